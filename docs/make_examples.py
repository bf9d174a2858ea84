"""Run the examples, and write their pages: docs/examples/NAME.md and .png, and the gallery in docs/examples/index.md.

    python docs/make_examples.py                   all of them
    python docs/make_examples.py label_budget      some of them

An example is a script whose docstring is a title and what it is about; it prints, and writes one picture of its name.
"""

import ast
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

SCRIPTS = Path(__file__).parents[1] / "examples"
PAGES = Path(__file__).parent / "examples"
ORDER = [
    "handwritten_digits",
    "short_texts",
    "mixed_table",
    "embeddings_and_shares",
    "own_graph",
    "label_budget",
    "suspicious_labels",
    "beyond_memory",
]
COLORS = 200  # of a picture; fewer bytes, and nobody sees it


def run(name: str, folder: Path) -> str:
    """What an example prints; its picture is then in the folder."""
    process = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", SCRIPTS / f"{name}.py"],
        cwd=folder,
        env=os.environ | {"MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
    )
    if process.returncode:
        raise SystemExit(f"{name}.py failed:\n{process.stderr}")
    return process.stdout


def introduction(name: str) -> tuple[str, str]:
    """Title and text of an example, from its docstring."""
    title, _, text = (ast.get_docstring(ast.parse((SCRIPTS / f"{name}.py").read_text())) or "").partition("\n\n")
    return title, text


def code(name: str) -> str:
    """The script without its docstring."""
    return re.sub(r'\A""".*?"""\s*', "", (SCRIPTS / f"{name}.py").read_text(), flags=re.DOTALL)


def page(name: str, printed: str) -> str:
    title, text = introduction(name)
    parts = [
        f"# {title}",
        text,
        f"![What the example draws: {title}]({name}.png)",
        f"```text\n{printed.rstrip()}\n```",
        f"The whole script, [`examples/{name}.py`](../../examples/{name}.py):",
        f"<!-- not run -->\n```python\n{code(name)}```",
    ]
    return "\n\n".join(parts) + "\n"


def gallery() -> str:
    """The page with all pictures."""
    lines = [
        "# Examples",
        "",
        "Each is one script, runs in less than a minute, and needs no download. They stand in `examples/`; "
        "`python docs/make_examples.py` makes these pages.",
        "",
    ]
    for name in ORDER:
        title, text = introduction(name)
        first = re.split(r"(?<=[.?])\s", " ".join(text.split()), maxsplit=1)[0]
        lines += [f"## [{title}]({name}.md)", "", first, "", f"[![{title}]({name}.png)]({name}.md)", ""]
    return "\n".join(lines)


def make(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        printed = run(name, Path(folder))
        picture = Image.open(Path(folder) / f"{name}.png").convert("RGB")
        picture.quantize(COLORS).save(PAGES / f"{name}.png", optimize=True)
    (PAGES / f"{name}.md").write_text(page(name, printed))


if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    for wanted in sys.argv[1:] or ORDER:
        make(wanted)
    (PAGES / "index.md").write_text(gallery())
