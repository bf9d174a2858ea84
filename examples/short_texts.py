"""Short texts

Which part of SciPy does a function belong to, told by the first lines of its documentation? The texts come with SciPy
itself. Words are counted by scikit-learn's TfidfVectorizer; a sparse matrix is as good as any other. Eight labels in
each class are given.
"""

import importlib
import inspect

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from greenlabel import GreenClassifier
from greenlabel.datasets import keep_labels

PARTS = ["interpolate", "linalg", "ndimage", "signal", "stats"]


def descriptions(part):
    """The first lines of what the functions and classes of a part of SciPy say of themselves."""
    module = importlib.import_module(f"scipy.{part}")
    members = [getattr(module, name) for name in sorted(module.__all__)]
    texts = [inspect.getdoc(one) or "" for one in members if callable(one)]
    return [" ".join(text.split("Parameters\n")[0].split()[:40]) for text in texts if len(text) > 40]


texts, truth = zip(*[(text, part) for part in PARTS for text in descriptions(part)], strict=True)
truth = np.array(truth)
y = keep_labels(truth, per_class=8, random_state=0)
unlabelled = y == ""
print("for example:", texts[0][:60], "->", truth[0])

words = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit_transform(texts)
topics = make_pipeline(TruncatedSVD(50, random_state=0), Normalizer()).fit_transform(words)

graph = GreenClassifier(random_state=0).fit(topics, y)
linear = LogisticRegression(C=10).fit(words[~unlabelled], y[~unlabelled])
by_graph = (graph.transduction_ == truth)[unlabelled].mean()
by_linear = (linear.predict(words) == truth)[unlabelled].mean()
print(f"{len(texts)} texts, 40 labels: {by_graph:.0%} of the others are right")
print(f"logistic regression, which sees the 40 labelled texts alone: {by_linear:.0%}")

figure, axis = plt.subplots(figsize=(6, 5))
ConfusionMatrixDisplay.from_predictions(
    truth[unlabelled], graph.transduction_[unlabelled], ax=axis, cmap="Greens", colorbar=False
)
axis.set_title(f"{by_graph:.0%} right from 40 labels\n(logistic regression: {by_linear:.0%})")
axis.tick_params(axis="x", rotation=30)
figure.tight_layout()
figure.savefig("short_texts.png", dpi=100)
