"""Embeddings and class shares

Embeddings are rows of numbers with one unit: take them as they are. Here one class in twenty is what we look for, but
the given labels are ten of each, as people tend to collect them. Where the true shares are known, say so.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from greenlabel import BlendedClassifier
from greenlabel.datasets import digits, keep_labels

X, digit = digits()
rng = np.random.default_rng(0)
nines = rng.choice(np.flatnonzero(digit == 9), 50, replace=False)  # the rare class
others = np.flatnonzero(np.isin(digit, [3, 4, 5, 7, 8]))
rows = np.concatenate([nines, others])
embeddings = PCA(32, random_state=0).fit_transform(X[rows])  # stands for the output of a network
truth = np.where(digit[rows] == 9, "nine", "other")
y = keep_labels(truth, per_class=10, random_state=0)
share = np.mean(truth == "nine")
print(f"{len(rows)} embeddings of {embeddings.shape[1]} numbers, {share:.1%} of them are nines, 10 + 10 labels")


def found(model):
    """Precision and recall of the rare class among the unlabelled rows."""
    predicted, true = model.transduction_[y == ""] == "nine", truth[y == ""] == "nine"
    return np.sum(predicted & true) / max(1, predicted.sum()), np.sum(predicted & true) / true.sum()


results = {}
for name, shares in {
    "equal shares": "balanced",
    "estimated (the default)": None,
    "a range": {"nine": (0.02, 0.1)},
    "the true shares": {"nine": share, "other": 1 - share},
}.items():
    model = BlendedClassifier(class_shares=shares, random_state=0).fit(embeddings, y)
    results[name] = found(model)
    print(f"{name}: precision {results[name][0]:.2f}, recall {results[name][1]:.2f}")

figure, axis = plt.subplots(figsize=(9, 3.2))
place = np.arange(len(results))
precision, recall = np.transpose(list(results.values()))
axis.barh(place + 0.2, precision, 0.4, label="precision", color="seagreen")
axis.barh(place - 0.2, recall, 0.4, label="recall", color="darkseagreen")
axis.set_yticks(place, list(results))
axis.legend(loc="center left", bbox_to_anchor=(1, 0.5))
axis.set_title("The rare class among the unlabelled rows")
figure.tight_layout()
figure.savefig("embeddings_and_shares.png", dpi=100)
