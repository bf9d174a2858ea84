"""Scikit-learn shells around propagators and labels.

    base          what all classifiers share; leave_one_out
    checks        features as users give them
    labelled      labels on a graph: class offsets, temperature, classes and probabilities
    knn           GreenClassifier, ConsistencyClassifier, HarmonicClassifier
    anchored      AnchoredGreenClassifier

May import ``propagators`` and every room below it.
"""
