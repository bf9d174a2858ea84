"""Suspicious labels, found and explained

100 digits have labels, and ten of these are wrong. `suspects` finds labels that the others contradict; `explain` shows
which labels say otherwise, with the exact share of each.
"""

import matplotlib.pyplot as plt
import numpy as np

from greenlabel import GreenClassifier, explain, suspects
from greenlabel.datasets import digits, keep_labels

X, truth = digits()
y = keep_labels(truth, per_class=10, random_state=0)
rng = np.random.default_rng(1)
wrong = rng.choice(np.flatnonzero(y != -1), 10, replace=False)
y[wrong] = (y[wrong] + rng.integers(1, 10, 10)) % 10

model = GreenClassifier(random_state=0).fit(X, y)
found = suspects(model)
first = found[:10]
print(
    f"{len(found)} of 100 labels are suspects, {sum(one.row in wrong for one in found)} of the 10 wrong ones among them"
)
print(f"of the first ten suspects {sum(one.row in wrong for one in first)} are wrong labels")

corrected = y.copy()
for one in first:
    corrected[one.row] = truth[one.row]  # a person looks at ten pictures
before = (model.transduction_ == truth)[y == -1].mean()
after = (model.relabel(corrected).transduction_ == truth)[y == -1].mean()
print(f"right before: {before:.1%}, after ten corrections: {after:.1%}")

shown = first[:4]
figure, axes = plt.subplots(len(shown), 4, figsize=(6, 6))
reasons = explain(model, [one.row for one in shown])
for line, one, labels in zip(axes, shown, reasons.top(4), strict=True):
    others = [label for label in labels if label.row != one.row][:3]
    pictures = [(one.row, f"given {one.given}, rather {one.suggested}")]
    pictures += [(label.row, f"{label.label} ({label.share:.0%})") for label in others]
    for axis in line:
        axis.axis("off")
    for axis, (row, title) in zip(line, pictures, strict=False):
        axis.imshow(X[row].reshape(8, 8), cmap="gray_r")
        axis.set_title(title, fontsize=9)
figure.suptitle("Suspects (left), and the labels that count most for them")
figure.tight_layout()
figure.savefig("suspicious_labels.png", dpi=100)
