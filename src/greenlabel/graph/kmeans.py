"""k-means: clusters of points on a few axes.

    cluster_centres(Q, c, seed)     many clusters, found roughly and fast, for a search to look into
    kmeans_groups(Q, m, seed)       m groups of the rows, found with care, whose means are anchors

Q (n, a) points     C (clusters, a) centres
"""

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.threads import in_parallel, load_faiss, one_thread
from greenlabel.graph.distances import row_blocks
from greenlabel.graph.products import nearest_point, with_half_norms
from greenlabel.graph.projection import sample_rows

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

TRAINING = 32  # points per cluster by which clusters are found
ROUNDS = 3


def cluster_centres(Q: Floats, n_clusters: int, seed: int) -> NDArray[np.float32]:
    """C of clusters of about as many points each, from a sample of the points; no more clusters than points.

    Products of matrices find the nearest centre three times as fast as faiss does.
    """
    rng = np.random.default_rng(seed)
    sample = np.ascontiguousarray(Q[sample_rows(len(Q), TRAINING * n_clusters, rng)], np.float32)
    C = sample[rng.permutation(len(sample))[:n_clusters]]
    for _ in range(ROUNDS):
        C = _means(sample, _nearest(sample, C), C)
    return C


def _nearest(Q: NDArray[np.float32], C: NDArray[np.float32]) -> Ints:
    """The centre nearest to each point."""
    centres = with_half_norms(C)
    blocks = row_blocks(len(Q), len(C))
    return np.concatenate(in_parallel(lambda rows: nearest_point(Q[rows], centres), blocks))


def _means(Q: NDArray[np.float32], group: Ints, C: NDArray[np.float32]) -> NDArray[np.float32]:
    """The mean of each group; a centre without points stays where it is."""
    size = np.bincount(group, minlength=len(C))
    in_use = np.flatnonzero(size)
    first = (np.cumsum(size) - size)[in_use]
    means = C.copy()
    means[in_use] = np.add.reduceat(Q[np.argsort(group, kind="stable")], first, axis=0) / size[in_use, None]
    return means


def kmeans_groups(Q: Floats, m: int, seed: int) -> Ints:
    """The group of each row; some of the m groups may be empty."""
    faiss = load_faiss()
    Q = np.ascontiguousarray(Q, np.float32)
    clustering = faiss.Kmeans(
        Q.shape[1], m, niter=20, seed=seed, min_points_per_centroid=1, max_points_per_centroid=len(Q)
    )
    with one_thread():
        clustering.train(Q)
        return np.asarray(faiss.knn(Q, clustering.centroids, 1)[1][:, 0])
