"""Handwritten digits from 20 labels

1,797 pictures of digits and nobody who has told us a single one. `suggest` says which pictures to ask about, first
without any label, then with a model; after 20 answers the model labels the other 1,777.
"""

import matplotlib.pyplot as plt
import numpy as np

from greenlabel import GreenClassifier, suggest
from greenlabel.datasets import digits

X, truth = digits()  # the truth is what a person would answer
y = np.full(len(X), -1)

first = [one.row for one in suggest(X, 10, random_state=0)]
y[first] = truth[first]
model = GreenClassifier(random_state=0).fit(X, y)
print(f"10 labels: {(model.transduction_ == truth)[y == -1].mean():.1%} of the other rows are right")

asked = list(first)
while len(asked) < 20:
    (best,) = suggest(model, 1)
    y[best.row] = truth[best.row]
    asked.append(best.row)
    model.relabel(y)  # the same graph, so this takes milliseconds
print(f"the last question was: {best.reason}")

unlabelled = np.flatnonzero(y == -1)
is_right = model.transduction_ == truth
print(f"20 labels: {is_right[unlabelled].mean():.1%} of the other rows are right")

shown = np.random.default_rng(0).choice(unlabelled, 40, replace=False)
figure, axes = plt.subplots(6, 10, figsize=(7, 5.2))
for axis, row in zip(axes.flat, [*asked, *shown], strict=True):
    axis.imshow(X[row].reshape(8, 8), cmap="gray_r")
    color = "black" if row in asked else "tab:green" if is_right[row] else "tab:red"
    axis.set_title(str(model.transduction_[row]), color=color, fontsize=10, pad=2)
    axis.axis("off")
figure.suptitle("20 labels given (two lines), 40 of the 1,777 predictions; wrong ones red")
figure.subplots_adjust(0.01, 0.02, 0.99, 0.88, 0.1, 0.4)
figure.savefig("handwritten_digits.png", dpi=100)
