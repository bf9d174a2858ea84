"""F = G Y: factor once, solve many. Nothing here knows the labels when it is made.

    green           eigenvectors, Cholesky, conjugate gradients
    anchored, sparse_anchored   the same on an anchored graph: an m x m system, dense or sparse
    classics        LLGC and HF
    conjugate_gradients     sparse systems, many right sides at once
    repeated, remembered    operators where rows are equal; operators that solve no column twice
    predictions     scores, classes and probabilities of rows from their anchors, block by block

May import ``graph``, ``blocks``, ``labels``, ``_common`` and ``errors``.
"""
