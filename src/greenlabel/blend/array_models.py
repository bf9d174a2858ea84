"""Trees and a logistic regression as plain arrays, which predict as scikit-learn's own do, to the last bit.

    Trees       p = 1/T sum_t value[leaf_t(x)]          leaf_t: from the root of tree t to the left while
                                                        x[feature] <= threshold, to the right otherwise
    Logistic    p = softmax(W x + b), of two classes the logistic function of w x + b

What a model file holds of them are these arrays: scikit-learn's objects cannot be built from a file that may be wrong.

T trees     N nodes in all, children behind their parents     c classes     X (n, d) rows
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

STEPS_AT_ONCE = 2**17  # pairs of a row and a tree on their way to a leaf, which fit in the processor's cache


@dataclass(frozen=True)
class Trees:
    roots: Ints  # (T,) the first node of each tree, ascending from 0
    left: Ints  # (N,) the child on the left, -1 for a leaf
    right: Ints  # (N,)
    feature: Ints  # (N,) the column that is compared; any of a leaf
    threshold: NDArray[np.float64]  # (N,)
    value: NDArray[np.float64]  # (N, c) shares of the classes

    @classmethod
    def of(cls, forest: Any) -> "Trees":
        """From a fitted forest of scikit-learn."""
        trees = [estimator.tree_ for estimator in forest.estimators_]
        sizes = np.array([tree.node_count for tree in trees])
        roots = np.cumsum(sizes) - sizes

        def below(name: str) -> Ints:
            parts = [getattr(tree, name) for tree in trees]
            moved = [np.where(part >= 0, part + root, -1) for part, root in zip(parts, roots, strict=True)]
            return np.concatenate(moved).astype(np.int32)

        left = below("children_left")
        feature = np.where(left >= 0, np.concatenate([tree.feature for tree in trees]), 0).astype(np.int32)
        threshold = np.where(left >= 0, np.concatenate([tree.threshold for tree in trees]), 0.0)
        value = np.concatenate([tree.value[:, 0, :] for tree in trees])
        return cls(roots.astype(np.int32), left, below("children_right"), feature, threshold, value)

    @cached_property
    def _children(self) -> Ints:
        """(2 N,) right and left child of each node."""
        return np.column_stack([self.right, self.left]).astype(np.intp).ravel()

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        P = np.zeros((X.shape[0], self.value.shape[1]))
        step = max(1, STEPS_AT_ONCE // len(self.roots))
        for start in range(0, X.shape[0], step):
            rows = X[start : start + step]
            rows = np.ascontiguousarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float32)
            for leaf in self.leaves(rows):  # in the order of the trees, which sums are rounded by
                P[start : start + step] += self.value[leaf]
        P /= len(self.roots)
        return P

    def leaves(self, X: NDArray[np.float32]) -> Ints:
        """(T, n) the leaf of each row in each tree."""
        n, d = X.shape
        values = X.ravel()
        node = np.repeat(self.roots.astype(np.intp), n)
        offset = np.tile(np.arange(n) * d, len(self.roots))
        moving = np.flatnonzero(self.left[node] >= 0)
        while len(moving):
            at: Ints = node.take(moving)
            goes_left = values.take(offset.take(moving) + self.feature.take(at)) <= self.threshold.take(at)
            at = self._children.take(2 * at + goes_left)
            node[moving] = at
            moving = moving[self.left.take(at) >= 0]
        return node.reshape(-1, n)


@dataclass(frozen=True)
class Logistic:
    weights: Floats  # (c, d), of two classes (1, d)
    intercept: Floats  # (c,) or (1,)

    @classmethod
    def of(cls, model: Any) -> "Logistic":
        """From a fitted LogisticRegression of scikit-learn."""
        return cls(model.coef_, model.intercept_)

    def predict_proba(self, X: Any) -> Floats:
        F = X @ self.weights.T + self.intercept
        if len(self.intercept) == 1:
            p = expit(F[:, 0])
            return np.stack([1 - p, p], axis=1)
        F -= F.max(axis=1, keepdims=True)
        np.exp(F, out=F)
        F /= F.sum(axis=1, keepdims=True)
        return F
