"""Whether a tag is the version: python .ci/check_tag.py v1.2.3

The version stands in src/greenlabel/__init__.py; the changelog has a dated heading for it,
and the citation file names it.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def version() -> str:
    (found,) = re.findall(r'^__version__ = "(.+)"$', (ROOT / "src/greenlabel/__init__.py").read_text(), re.MULTILINE)
    return found


def troubles(tag: str) -> list[str]:
    number = version()
    heading = rf"^## {re.escape(number)} \(\d{{4}}-\d\d-\d\d\)$"
    found = []
    if tag != f"v{number}":
        found.append(f"the tag is {tag}, the version {number}; tag v{number}, or change src/greenlabel/__init__.py.")
    if not re.search(heading, (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE):
        found.append(f"CHANGELOG.md has no heading '## {number} (YYYY-MM-DD)'; write the day of the release there.")
    if f"\nversion: {number}\n" not in (ROOT / "CITATION.cff").read_text():
        found.append(f"CITATION.cff does not say version: {number}; change it there too.")
    return found


if __name__ == "__main__":
    sys.exit("\n".join(troubles(sys.argv[1])) or 0)
