"""Your own graph

Links instead of features: the files of SciPy, linked where one imports from another. From three labelled files of each
part the graph tells the part of all others. Files that are linked with nothing that has a label are unreached, and the
model says so instead of guessing.
"""

import ast
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import scipy
import scipy.sparse as sp

from greenlabel import GreenClassifier
from greenlabel.datasets import keep_labels
from greenlabel.errors import UnreachedWarning

PARTS = ["integrate", "ndimage", "optimize", "signal", "sparse", "special", "stats"]
FOLDER = Path(scipy.__file__).parent


def name_of(path):
    """The dotted name of a file, without scipy itself."""
    return ".".join(path.relative_to(FOLDER).with_suffix("").parts).removesuffix(".__init__")


def imports_of(path):
    """Dotted names that a file imports from SciPy."""
    package = name_of(path).split(".") if path.name == "__init__.py" else name_of(path).split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            if node.level:
                start = package[: len(package) - node.level + 1]
            elif (node.module or "").startswith("scipy"):
                start = []
            else:
                continue
            base = [*start, *(node.module or "").removeprefix("scipy").strip(".").split(".")]
            base = ".".join(part for part in base if part)
            yield from [base, *(f"{base}.{alias.name}" for alias in node.names)]


files = [path for part in PARTS for path in sorted((FOLDER / part).rglob("*.py")) if "tests" not in path.parts]
files = [path for path in files if path.name != "__init__.py"]  # these import all of their part
number = {name_of(path): i for i, path in enumerate(files)}
links = [(i, number[name]) for i, path in enumerate(files) for name in imports_of(path) if name in number]
row, column = np.transpose(links)
S = sp.csr_array((np.ones(len(links)), (row, column)), shape=(len(files), len(files)))
S = ((S + S.T) > 0).astype(float)
truth = np.array([path.relative_to(FOLDER).parts[0] for path in files])
print(f"{len(files)} files, {S.nnz // 2} links, 21 labels")

linked = np.flatnonzero(S.sum(axis=1) > 0)
y = np.full(len(files), "", dtype=truth.dtype)
y[linked] = keep_labels(truth[linked], per_class=3, random_state=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", UnreachedWarning)  # which says what is printed below
    model = GreenClassifier(graph="precomputed").fit(S, y)
reached = model.reached_ & (y == "")
accuracy = (model.transduction_ == truth)[reached].mean()
print(f"{(~model.reached_).sum()} files are reached by no label; of the others {accuracy:.0%} are right")

order = np.lexsort((model.label_distributions_.max(axis=1), truth))
order = order[model.reached_[order]]
figure, axis = plt.subplots(figsize=(9, 3.4))
axis.imshow(model.label_distributions_[order].T, aspect="auto", cmap="Greens", interpolation="nearest")
axis.set_yticks(range(len(PARTS)), model.classes_)
middles = [np.flatnonzero(truth[order] == part).mean() for part in model.classes_]
axis.set_xticks(middles, model.classes_, rotation=30)
axis.set(
    title=f"Probability of each part for {len(order)} files: {accuracy:.0%} right from 21 labels", xlabel="true part"
)
figure.tight_layout()
figure.savefig("own_graph.png", dpi=100)
