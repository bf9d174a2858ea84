"""Several models, one prediction: the graph and ordinary models, weighted by what the labels say.

    task              what an expert is, and what it learns
    experts           graphs, which see all rows; which experts are usual
    row_experts       models that see the labelled rows only
    array_models      trees and a logistic regression as arrays, for model files
    weights           out-of-fold evidence -> weights, temperature
    in_blocks         rows beyond memory, where an array of features would stand
    adding            evidence of all experts, added up block by block
    predictor         what new rows need
    fitted            experts that know the labels, added up
    classifier        BlendedClassifier

May import ``estimators`` and every room below it.
"""
