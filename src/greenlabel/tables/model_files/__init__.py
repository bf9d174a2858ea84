"""Models as files: JSON and plain arrays that name no code, each value checked as it is read.

    container       the zip, its arrays, the checks
    features        feature steps      classifiers, blends      models
    saved           SavedModel, load_model

May import ``tables.io``, ``tables.columns`` and the estimators.
"""
