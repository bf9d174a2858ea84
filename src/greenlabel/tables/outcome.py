"""What labelling a table came to: predictions for its rows, and how far they can be trusted. Arrays, no files.

    n rows, c classes, l labelled rows on which the model was validated

Trust is measured on the given labels: each is predicted without itself, leave-one-out or (by a blend) out-of-fold.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.parameters import check_integer
from greenlabel.inspection.explaining import Explanation, Influence, explain, explain_by_others
from greenlabel.inspection.suggesting import Suggestion, Suggestions, suggest_with_labels
from greenlabel.inspection.suspicion import Suspects, suspects
from greenlabel.labels.estimates import LEVEL, Filled, estimate_accuracy
from greenlabel.tables.columns.features import Column

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]

BINS = 10
SUGGESTED = 10  # rows to label next that a report shows


@dataclass(frozen=True)
class Validation:
    """Labelled rows, predicted without their own label: leave-one-out, by a blend out-of-fold."""

    rows: Ints  # (l,)
    codes: Ints  # (l,) the given labels
    probabilities: Floats  # (l, c)

    @cached_property
    def predictions(self) -> Ints:
        return self.probabilities.argmax(axis=1)

    @property
    def confidence(self) -> Floats:
        return self.probabilities.max(axis=1)

    @property
    def is_right(self) -> Bools:
        return self.predictions == self.codes


@dataclass
class Tally:
    """How many rows there are of each kind."""

    rows: int
    given: Ints  # (c,) labels given in each class
    filled: Ints  # (c,) labels filled in
    empty: int  # rows left without a label
    unreached: int  # rows without a label that no label reaches
    estimated: Filled  # the rows filled in, as the estimate of their accuracy needs them

    @classmethod
    def of(
        cls, given: Ints, predictions: Ints, probabilities: Floats, is_reached: Bools, is_blend: bool = False
    ) -> "Tally":
        """The tally of rows whose given and predicted labels are indices of c classes, or -1; probabilities (n, c).

        A blend has other experts for rows that no label reaches.
        """
        c = probabilities.shape[1]
        is_given = given >= 0
        filled_in = np.where(is_given, -1, predictions)
        return cls(
            rows=len(given),
            given=np.bincount(given[is_given], minlength=c),
            filled=np.bincount(filled_in[filled_in >= 0], minlength=c),
            empty=int((predictions < 0).sum()),
            unreached=int((~is_reached & ~is_given).sum()),
            estimated=Filled.of(filled_in, probabilities.max(axis=1), is_reached | is_blend, c),
        )

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            self.rows + other.rows,
            self.given + other.given,
            self.filled + other.filled,
            self.empty + other.empty,
            self.unreached + other.unreached,
            self.estimated + other.estimated,
        )


@dataclass
class Outcome:
    """Predictions for the rows of one table, or for a sample of them with a tally of all."""

    target: str
    classes: list[Any]
    given: Ints  # (n,) index of the given label in classes, -1 where none was given
    probabilities: Floats  # (n, c)
    predictions: Ints  # (n,) index of the label in classes, given ones kept; -1 where the row was left empty
    is_reached: Bools  # (n,) False where no label reaches the row
    validation: Validation
    columns: list[Column]
    X: Any  # (n, d) features
    method: str
    graph: dict[str, Any]
    seconds: dict[str, float]
    warnings: list[str] = field(default_factory=list)
    experts: dict[str, dict[str, float]] = field(default_factory=dict)  # of a blend: accuracy, log_loss, weight
    only_confident: float = 0.0  # rows below this confidence were left empty
    model: Any = None
    features: Any = None
    numbers: Ints | None = None  # (n,) of a sample: the numbers of its rows in the whole table, ascending
    whole: Tally | None = None  # of a sample: the tally of the whole table
    label_sources: dict[str, int] = field(default_factory=dict)  # labels given, checked, changed by hand
    stream: dict[str, Any] = field(default_factory=dict)  # of a table read in blocks: speed, and what did not fit

    @cached_property
    def tally(self) -> Tally:
        """Of all rows of the table."""
        if self.whole is not None:
            return self.whole
        return Tally.of(self.given, self.predictions, self.probabilities, self.is_reached, bool(self.experts))

    @property
    def n_rows(self) -> int:
        return self.tally.rows

    def number(self, row: int) -> int:
        """The number of a row in the whole table, as people count."""
        return int(row if self.numbers is None else self.numbers[row]) + 1

    @cached_property
    def is_given(self) -> Bools:
        return self.given >= 0

    @cached_property
    def confidence(self) -> Floats:
        """(n,) the probability of the most likely class; 1 where the label was given."""
        return np.where(self.is_given, 1.0, self.probabilities.max(axis=1))

    @cached_property
    def margin(self) -> Floats:
        """(n,) how far the most likely class is ahead of the next; 1 where the label was given."""
        top = np.partition(self.probabilities, -2, axis=1)[:, -2:]
        return np.where(self.is_given, 1.0, top[:, 1] - top[:, 0])

    @property
    def is_empty(self) -> Bools:
        """(n,) rows that were left without a label."""
        return self.predictions < 0

    @property
    def seed(self) -> int | None:
        """What seeded the features, or else the model."""
        return getattr(self.features, "seed", getattr(self.model, "random_state", None))

    @property
    def counts(self) -> tuple[Ints, Ints]:
        """(c,) labels given in each class, and (c,) labels filled in."""
        return self.tally.given, self.tally.filled

    def largest_classes(self, max_classes: int) -> Ints:
        """Indices of all classes in their order; of more than ``max_classes``, those with most rows, largest first."""
        c = len(self.classes)
        return np.arange(c) if c <= max_classes else np.argsort(-np.add(*self.counts), kind="stable")[:max_classes]

    @cached_property
    def estimated_accuracy(self) -> tuple[float, float, float] | None:
        """Accuracy on the rows filled in, and its interval, as ``greenlabel.labels.estimates`` has it.

        None where no label could be predicted without itself, or no row was filled in.
        """
        codes, p = self.validation.codes, self.validation.probabilities
        if not len(codes):
            return None
        found = estimate_accuracy(codes, p, self.tally.given, self.tally.estimated, self.only_confident)
        return None if found is None else (float(found), found.low, found.high)

    @property
    def hidden_and_right(self) -> tuple[int, int]:
        """How many hidden labels the estimate counts, and how many of them were predicted right.

        Those below the confidence that a row needs to be filled in say nothing about the rows filled in.
        """
        counted = self.validation.confidence >= self.only_confident
        return int(counted.sum()), int(self.validation.is_right[counted].sum())

    def confusion(self) -> Ints:
        """(c, c) validated labels by given class (row) and predicted class (column)."""
        c = len(self.classes)
        return np.bincount(self.validation.codes * c + self.validation.predictions, minlength=c * c).reshape(c, c)

    def reliability(self) -> list[dict[str, float]]:
        """Validated labels by their confidence: how many, mean confidence, accuracy. Empty bins are left out."""
        confidence = self.validation.confidence
        index = np.minimum((confidence * BINS).astype(int), BINS - 1)
        return [
            {
                "from": b / BINS,
                "to": (b + 1) / BINS,
                "rows": int((index == b).sum()),
                "confidence": float(confidence[index == b].mean()),
                "accuracy": float(self.validation.is_right[index == b].mean()),
            }
            for b in range(BINS)
            if (index == b).any()
        ]

    def suggest(self, n: int = 10) -> Suggestions:
        """The rows to label next, best first, with reasons: what ``greenlabel.suggest`` says of the model.

        Rows are counted from 0, here and below: those of the frame, or of the whole table where a sample is held.
        """
        check_integer("n", n, 1)
        return suggest_with_labels(self.model, n, names=as_array(self.classes))

    def explain(self, row: Any) -> Explanation:
        """The part of every given label in the scores of a row, or of several: ``greenlabel.explain`` of the model."""
        return self._named(explain(self.model, row))

    def _named(self, found: Explanation) -> Explanation:
        names = as_array(self.classes)
        return replace(found, labels=names[found.labels], classes=names, predicted=names[found.predicted])

    def suspects(self) -> Suspects:
        """Given labels that the others contradict, surest first: ``greenlabel.suspects`` of the model."""
        names = as_array(self.classes)
        named = (replace(one, given=names[one.given], suggested=names[one.suggested]) for one in suspects(self.model))
        return Suspects(named)

    @property
    def can_inspect(self) -> bool:
        """Whether the model is here with the rows of the table; of a table in blocks a sample is."""
        return self.model is not None and self.numbers is None

    @cached_property
    def to_label(self) -> list[Suggestion]:
        """The first rows to label next; none where it cannot be said cheaply."""
        return self.suggest(SUGGESTED) if self.can_inspect else []

    def say_otherwise(self, contradicted: list[dict[str, Any]], max_labels: int = 3) -> list[list[Influence]]:
        """For each contradicted label the labels that say otherwise, with their shares of all support but its own."""
        if not self.can_inspect or not contradicted:
            return [[] for _ in contradicted]
        found = map(self._named, explain_by_others(self.model, [one["row"] for one in contradicted]))
        return [
            [label for label in by.top(len(by.labelled))[0] if label.label == one["others_say"]][:max_labels]
            for one, by in zip(contradicted, found, strict=True)
        ]

    def least_confident(self, max_rows: int = 20) -> Ints:
        """Rows without a given label, the least confident prediction first."""
        rows = np.flatnonzero(~self.is_given)
        return rows[np.lexsort((rows, self.margin[rows], self.confidence[rows]))][:max_rows]

    def contradicted(self, max_rows: int = 20) -> list[dict[str, Any]]:
        """Given labels that the others contradict, the most confident contradiction first."""
        found = self.validation
        wrong = np.flatnonzero(~found.is_right)
        order = np.argsort(-found.confidence[wrong], kind="stable")
        return [
            {
                "row": int(found.rows[i]),
                "given": self.classes[found.codes[i]],
                "others_say": self.classes[found.predictions[i]],
                "confidence": float(found.confidence[i]),
            }
            for i in wrong[order][:max_rows]
        ]

    def summary(self) -> dict[str, Any]:
        """The facts that the terminal, --json and the report show."""
        given, filled = self.counts
        accuracy = self.estimated_accuracy
        return {
            "rows": self.n_rows,
            "target": self.target,
            "labels_given": dict(zip(map(str, self.classes), given.tolist(), strict=True)),
            "label_sources": self.label_sources,
            "labels_predicted": dict(zip(map(str, self.classes), filled.tolist(), strict=True)),
            "rows_left_empty": self.tally.empty,
            "rows_not_reached": self.tally.unreached,
            "estimated_accuracy": accuracy
            and {
                "share": accuracy[0],
                "low": accuracy[1],
                "high": accuracy[2],
                "level": LEVEL,
                "labels_held_out": self.hidden_and_right[0],
                "labels_held_out_right": self.hidden_and_right[1],
            },
            "method": self.method,
            "experts": self.experts,
            "graph": self.graph,
            "features": int(self.X.shape[1]),
            "columns": {
                column.name: {
                    "kind": column.kind,
                    "features": column.n_features,
                    **({"why": column.why} if column.why else {}),
                }
                for column in self.columns
            },
            "seconds": self.seconds,
            "warnings": self.warnings,
            **(
                {"label_next": [suggestion_facts(self.number(one.row), one) for one in self.to_label]}
                if self.can_inspect
                else {}
            ),
            **({"stream": self.stream} if self.stream else {}),
        }


def as_array(classes: list[Any]) -> NDArray[Any]:
    """(c,) the names of classes as they are; a model of a table knows their indices alone."""
    names = np.empty(len(classes), dtype=object)
    names[:] = classes
    return names


def suggestion_facts(number: int, one: Suggestion) -> dict[str, Any]:
    """A suggestion for --json; the row by its number as people count."""
    return {"row": number, "reason": one.reason, "covers": one.covers, "between": list(map(str, one.between))}
