"""What a fitted classifier says of itself in a notebook, below scikit-learn's table of its parameters."""

from typing import Any

import numpy as np

from greenlabel._common.markup import html_table
from greenlabel.labels.estimates import Estimate, Filled, estimate_accuracy

MAX_NAMES, MAX_NAME = 8, 24  # classes that are named, and characters of each
MAX_ROWS = 20_000  # rows up to which an accuracy that was not asked for is estimated: looking must not take seconds
TESTED = 200  # labelled rows that it is estimated from


def learned_table(model: Any) -> str:
    """Rows, labels, classes, components and the estimated accuracy; for new rows alone what is left of them."""
    return html_table((), learned(model))


def learned(model: Any) -> list[tuple[str, str]]:
    fitted = model.fitted_
    labels = fitted.labels
    lines = [
        ("rows", f"{labels.n:,}"),
        ("labels given", f"{len(labels.rows):,}"),
        ("classes", named(labels.classes)),
    ]
    if not hasattr(fitted, "cross_validated"):
        return [*lines, ("keeps", "what new rows need")]
    if hasattr(model, "n_components_"):
        lines.append(("connected components", f"{model.n_components_:,}"))
    estimate = stated_accuracy(model)
    if estimate is not None:
        lines.append(("estimated accuracy", f"{estimate:.1%} ({estimate.low:.1%} to {estimate.high:.1%})"))
    return lines


def named(classes: Any) -> str:
    """How many classes there are, and the names of the first."""
    names = [str(name) for name in classes[:MAX_NAMES].tolist()]
    short = [name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…" for name in names]
    more = ", …" if len(classes) > MAX_NAMES else ""
    return f"{len(classes):,}: {', '.join(short)}{more}"


def stated_accuracy(model: Any) -> Estimate | None:
    """A blend has estimated its accuracy; that of a graph comes from leave-one-out, where there are few rows."""
    if hasattr(model, "estimated_accuracy_"):
        return model.estimated_accuracy_
    labels = model.fitted_.labels
    if labels.n > MAX_ROWS:
        return None
    _, codes, p = model.cross_validated(TESTED)
    others = np.delete(np.arange(labels.n), labels.rows)
    q = model.label_distributions_[others]
    filled = Filled.of(q.argmax(axis=1), q.max(axis=1), model.reached_[others], q.shape[1])
    return estimate_accuracy(codes, p, labels.counts, filled)
