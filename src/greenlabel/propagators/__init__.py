"""Propagators: a graph and its operator, which know no labels; and labels spread by them.

    base           Propagator, Propagation (labels on a propagator), Predictor (what new rows need)
    knn            on the graph of nearest rows, or on a precomputed one; GF, LLGC
    harmonic       the same for HF, whose system depends on which rows are labelled
    anchored_graph, anchored    rows through their anchors, in blocks
    candidates     several propagators of the same rows, of which labels choose one

May import ``operators``, ``graph``, ``blocks``, ``labels``, ``_common`` and ``errors``.
"""
