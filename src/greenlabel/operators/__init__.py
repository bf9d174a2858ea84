"""F = G Y: factor once, solve many. Nothing here knows the labels when it is made.

    green           eigenvectors, Cholesky, conjugate gradients, anchors
    repeated, remembered    the same where rows are equal; operators that solve no column twice
    classics        LLGC and HF
    predictions     scores, classes and probabilities of rows from their anchors, block by block

May import ``graph``, ``labels``, ``_common`` and ``errors``.
"""
