"""How long the command line takes to speak: whole processes, in turns with the imports they cannot do without.

    quick_start   --help, a wrong option, a missing file    over    python -c "import typer, rich.console"
    predicting    greenlabel predict on 2,000 rows          over    the imports that it needs
    streaming     greenlabel label in blocks, the blend     over    the same by --method anchored

Seconds are of the processor, of the process and its threads, which a busy machine changes less than those of the clock.
"""

import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

ROUNDS = 7
BARE = ["-c", "import typer, rich.console"]
QUICK = {
    "help": ["--help"],
    "wrong_option": ["label", "--no-such-option"],
    "missing_file": ["label", "nofile.csv", "--target", "y"],
}
MODULES = ("cli", "tables.opening", "tables.model_files.saved", "tables.report.summary")
NEEDED = "import " + ", ".join(f"greenlabel.{name}" for name in MODULES)


def seconds_of(words: list[str], folder: str) -> float:
    """Processor time of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], cwd=folder, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def in_turns(processes: dict[str, list[str]], folder: str, rounds: int = ROUNDS) -> dict[str, float]:
    """The shortest time of each."""
    times = [{name: seconds_of(words, folder) for name, words in processes.items()} for _ in range(rounds)]
    return {name: min(taken[name] for taken in times) for name in processes}


def quick_start() -> dict[str, float]:
    with TemporaryDirectory() as folder:
        commands = {name: ["-m", "greenlabel", *words] for name, words in QUICK.items()}
        found = in_turns({"bare": BARE, **commands}, folder)
    return {f"{name}_s": taken for name, taken in found.items()} | {
        "ratio": max(found[name] for name in QUICK) / found["bare"]
    }


def predicting(n: int = 2_000) -> dict[str, float]:
    with TemporaryDirectory() as folder:
        write_table(Path(folder) / "t.csv", n)
        label = [sys.executable, "-m", "greenlabel", "label", "t.csv", "-t", "kind", "--save", "m.green", "-q"]
        subprocess.run(label, cwd=folder, check=True)
        predict = ["-m", "greenlabel", "predict", "m.green", "t.csv", "-q", "--force"]
        found = in_turns({"imports": ["-c", NEEDED], "predict": predict}, folder, rounds=3)
    return {f"{name}_s": taken for name, taken in found.items()} | {"ratio": found["predict"] / found["imports"]}


def streaming(n: int = 1_000_000) -> dict[str, float]:
    """A million rows of 20 numbers as CSV, 500 of them with a label; 100 bytes may be held for each row."""
    with TemporaryDirectory() as folder:
        write_numbers(Path(folder) / "t.csv", n)
        label = ["-m", "greenlabel", "label", "t.csv", "-t", "kind", "-q", "--force", "--memory-limit", str(100 * n)]
        found = in_turns({method: [*label, "--method", method] for method in ("anchored", "auto")}, folder, rounds=1)
    return {f"{name}_s": taken for name, taken in found.items()} | {"ratio": found["auto"] / found["anchored"]}


def write_numbers(path: Path, n: int, d: int = 20, c: int = 5) -> None:
    """Classes of three clouds each, which overlap."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, c, n)
    X = 1.2 * rng.normal(size=(c, 3, d))[kind, rng.integers(0, 3, n)] + rng.normal(size=(n, d))
    has_label = rng.permutation(n) < 500
    labels = [f"kind {code}" if known else None for code, known in zip(kind.tolist(), has_label, strict=True)]
    pl.DataFrame({f"x{j}": X[:, j].round(4) for j in range(d)} | {"kind": labels}).write_csv(path)


def write_table(path: Path, n: int) -> None:
    """Rows of numbers, a colour and a few words; one in twenty has a label."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 6)) + 4 * kind[:, None]
    words = np.array(["red ball", "steel hammer", "paper box"])[kind]
    rows = [
        f"{','.join(f'{x:.3f}' for x in X[i])},{words[i].split()[0]},a {words[i]} of {i % 7},"
        f"{'abc'[kind[i]] if i % 20 == 0 else ''}"
        for i in range(n)
    ]
    path.write_text("\n".join(["a,b,c,d,e,f,color,note,kind", *rows]) + "\n")
