"""The pages of the documentation, and what is fenced off in them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(
    r"(<!-- (?P<mark>not run) -->\n+)?```(?P<language>\w*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)
