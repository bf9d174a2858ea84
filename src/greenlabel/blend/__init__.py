"""Several models, one prediction: the graph and ordinary models, weighted by what the labels say.

    weights           out-of-fold evidence -> weights, temperature
    experts           evidence of each model, in the same form
    array_models      trees and a logistic regression as arrays, for model files
    classifier        BlendedClassifier

May import everything but ``tables``, ``paper`` and ``cli``.
"""
