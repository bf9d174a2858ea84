"""A label budget: which rows to label

Somebody pays for 60 labels. Are they better spent on rows that `suggest` picks than on random ones? Both ways are
tried on the digits, five random orders against one suggested one.
"""

import matplotlib.pyplot as plt
import numpy as np

from greenlabel import GreenClassifier, suggest
from greenlabel.datasets import digits

X, truth = digits()
BUDGET = [10, 15, 20, 30, 40, 60]


def labels(rows):
    """-1 for all rows but these."""
    y = np.full(len(X), -1)
    y[rows] = truth[rows]
    return y


def accuracy(rows):
    """Share of right rows among the others, where these have labels."""
    y = labels(rows)
    model.relabel(y)  # the graph knows no labels and stays
    return (model.transduction_ == truth)[y == -1].mean()


asked = [one.row for one in suggest(X, BUDGET[0], random_state=0)]
model = GreenClassifier(random_state=0).fit(X, labels(asked))
suggested = [accuracy(asked)]
for n in BUDGET[1:]:
    asked += [one.row for one in suggest(model, n - len(asked))]
    suggested.append(accuracy(asked))

orders = [np.random.default_rng(seed).permutation(len(X)) for seed in range(5)]
random = np.array([[accuracy(order[:n]) for n in BUDGET] for order in orders])
for n, ours, theirs in zip(BUDGET, suggested, random.mean(axis=0), strict=True):
    print(f"{n} labels: suggested {ours:.0%}, at random {theirs:.0%}")

figure, axis = plt.subplots(figsize=(7, 4))
axis.plot(BUDGET, suggested, "o-", color="seagreen", label="suggested")
axis.plot(BUDGET, random.mean(axis=0), "s--", color="0.5", label="at random, mean of five orders")
axis.fill_between(BUDGET, random.min(axis=0), random.max(axis=0), color="0.9")
axis.set(xlabel="labels", ylabel="right, of the other rows", title="What 60 labels buy: 1,797 digits", ylim=(0.3, 1))
axis.legend(loc="lower right")
figure.tight_layout()
figure.savefig("label_budget.png", dpi=100)
