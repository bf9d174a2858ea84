"""Slow, dense, obvious versions of everything that greenlabel computes fast."""

import numpy as np
from scipy.special import softmax


def squared_distances(X, P):
    X, P = np.asarray(X, dtype=np.float64), np.asarray(P, dtype=np.float64)
    return ((X[:, None, :] - P[None, :, :]) ** 2).sum(axis=2)


def nearest(dist2, k):
    """Numbers of the k smallest entries of each row, ties by number."""
    return np.lexsort((np.broadcast_to(np.arange(dist2.shape[1]), dist2.shape), dist2), axis=1)[:, :k]


def mixing_matrix(X, P, k):
    """Z by Eq. Z, entry by entry."""
    dist2 = squared_distances(X, P)
    Z = np.zeros_like(dist2)
    for i, e in enumerate(dist2):
        order = nearest(e[None], k + 1)[0]
        yardstick = e[order[k]]
        total = k * yardstick - e[order[:k]].sum()
        Z[i, order[:k]] = (yardstick - e[order[:k]]) / total if total > 0 else 1 / k
    return Z


def knn_similarity(X, k, weights):
    """S (n, n) of the k nearest other rows, by the formulas of the paper."""
    dist2 = squared_distances(X, X)
    np.fill_diagonal(dist2, np.inf)
    n = len(X)
    A = np.zeros((n, n))
    order = nearest(dist2, k + 1)
    for i in range(n):
        neighbours = order[i, :k]
        if weights == "adaptive":
            e = dist2[i, order[i]]
            total = (e[-1] - e[:k]).sum()
            A[i, neighbours] = (e[-1] - e[:k]) / total if total > 0 else 1 / k
        elif weights == "gaussian":
            A[i, neighbours] = np.exp(-dist2[i, neighbours] / gaussian_width(X))
        else:
            A[i, neighbours] = 1
    return (A + A.T) / 2 if weights == "adaptive" else np.maximum(A, A.T)


def gaussian_width(X):
    """Var(squared distances other than 0) / d, over all pairs."""
    dist2 = squared_distances(X, X)
    return dist2[dist2 > 0].var() / X.shape[1]


def laplacian(S):
    return np.diag(S.sum(axis=1)) - S


def green(S, mu):
    """G of the improved method: the pseudo-inverse of L* (Eq. L*).

    The eigenvalue of the constant vector is 0 but for rounding, which may be more than the usual 1e-15 of the largest.
    """
    n = len(S)
    return np.linalg.pinv(laplacian(S) + n * mu * np.eye(n) - mu * np.ones((n, n)), hermitian=True, rcond=1e-13)


def original_green(S):
    """G of the original method: the pseudo-inverse of L (Eq. F_GF)."""
    return np.linalg.pinv(laplacian(S), hermitian=True, rcond=1e-10)


def elimination(S, mu, eta, Y):
    """Algorithm 1 as printed: (L + n mu I + eta 11') F = Y."""
    n = len(S)
    return np.linalg.solve(laplacian(S) + n * mu * np.eye(n) + eta * np.ones((n, n)), Y)


def bordered(Z, mu, Y):
    """Eq. F_result as printed, divided by theta."""
    n, m = Z.shape
    B = Z / np.sqrt(Z.sum(axis=0))
    theta = 1 + n * mu
    ones = np.ones((n, 1))
    M = np.block([[B.T @ B - theta * np.eye(m), B.T @ ones], [ones.T @ B, np.array([[n]])]])
    wide = np.hstack([B, ones])
    return (Y - wide @ np.linalg.solve(M, wide.T @ Y)) / theta


def consistency(S, gamma, Y):
    """Eq. F_LLGC."""
    return np.linalg.solve(laplacian(S) + gamma * np.eye(len(S)), Y)


def harmonic(S, Y, labelled):
    """F = Y on labelled rows; elsewhere L F = 0."""
    F, L = np.array(Y, dtype=float), laplacian(S)
    F[~labelled] = np.linalg.solve(L[~labelled][:, ~labelled], S[~labelled][:, labelled] @ Y[labelled])
    return F


def kernel_ridge(X, P, codes, absolute, intercept, ridge):
    """F = K(X, P) (K(P, P) + ridge I)^-1 Y with K = exp(-distance / columns) + intercept, entry by entry."""

    def kernel(A, B):
        gap = np.abs(A[:, None, :] - B[None, :, :])
        return np.exp(-(gap if absolute else gap**2).sum(axis=2) / P.shape[1]) + intercept

    return kernel(X, P) @ np.linalg.solve(kernel(P, P) + ridge * np.eye(len(P)), np.eye(codes.max() + 1)[codes])


def penalised_loss(w, A, codes, before, strength):
    """The loss of the weights of a blend, row by row; one more row, spread over all classes, stands beside them."""
    k, c = A.shape[1:]
    loss = strength * ((w - before) ** 2).sum()
    for i in range(k):
        F = sum(w[e] * A[e, i] for e in range(len(w)))
        log_p = F - np.log(np.exp(F).sum())
        loss -= k / (k + 1) * log_p[codes[i]] + log_p.sum() / (c * (k + 1))
    return loss


def best_total(F, counts):
    """The largest sum of scores when class j gets counts[j] rows: an assignment of rows to slots."""
    from scipy.optimize import linear_sum_assignment

    slots = np.repeat(np.arange(F.shape[1]), counts)
    rows, chosen = linear_sum_assignment(-F[:, slots])
    return F[rows, slots[chosen]].sum()


def offset_loss(x, H, codes, weight):
    """J(t, b) of x = (t, b): the weighted log-loss of softmax(t h + b) on smoothed classes, and the ridge on b."""
    n_rows, c = H.shape
    loss = np.sum(x[1:] ** 2) / 2
    for h, code, w in zip(H, codes, weight, strict=True):
        p = softmax(x[0] * h + x[1:])
        target = (np.full(c, 1 / c) + n_rows * np.eye(c)[code]) / (n_rows + 1)
        loss -= w * (target @ np.log(p))
    return loss
