"""Scikit-learn shells around graphs, operators and labels; no arithmetic.

    base          what all classifiers share
    knn           GreenClassifier, ConsistencyClassifier, HarmonicClassifier, leave_one_out
    anchored      AnchoredGreenClassifier

May import everything but ``blend``, ``tables``, ``paper`` and ``cli``.
"""
