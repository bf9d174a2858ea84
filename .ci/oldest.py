"""Print the oldest dependencies that pyproject.toml allows, as constraints: python .ci/oldest.py > oldest.txt

numpy>=2.0 becomes numpy==2.0. With them, ``python -m pip install -c oldest.txt '.[test]'`` makes an environment in
which every direct dependency is the oldest one named; what those need themselves is chosen by pip.
"""

import re
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
FLOOR = re.compile(r"(?P<name>[\w.-]+)(\[[\w,]+\])?>=(?P<version>[\d.]+)")
FOR_DEVELOPERS = {"docs", "test", "dev", "peers"}  # their tools may be new


def requirements() -> list[str]:
    extras = [lines for name, lines in PROJECT["optional-dependencies"].items() if name not in FOR_DEVELOPERS]
    everything = [*PROJECT["dependencies"], *(line for lines in extras for line in lines)]
    return [line for line in everything if not line.startswith("greenlabel[")]


def constraints() -> list[str]:
    """One line for each dependency; a requirement that names no oldest version is an error."""
    found = {line: FLOOR.fullmatch(line) for line in requirements()}
    without = [line for line, match in found.items() if match is None]
    if without:
        raise SystemExit(f"{without[0]!r} names no oldest version; write it as name>=version.")
    return sorted({f"{match['name']}=={match['version']}" for match in found.values() if match})


if __name__ == "__main__":
    print("\n".join(constraints()))
