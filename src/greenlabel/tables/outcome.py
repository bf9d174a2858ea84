"""What labelling a table came to: answers for its rows, and how far they can be trusted. Arrays and facts, no files.

    n rows, c classes, l labelled rows that were held out

Trust is measured on the given labels: each is hidden in turn and answered from the others alone.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel.labels.estimates import LEVEL, Filled, estimate_accuracy
from greenlabel.tables.columns.features import Column

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

BINS = 10


@dataclass(frozen=True)
class HeldOut:
    """Labelled rows, answered without their own label."""

    rows: Ints  # (l,)
    codes: Ints  # (l,) the labels that were given
    probabilities: Floats  # (l, c)

    @cached_property
    def answers(self) -> Ints:
        return self.probabilities.argmax(axis=1)

    @property
    def is_right(self) -> NDArray[np.bool_]:
        return self.answers == self.codes


@dataclass
class Tally:
    """How many rows there are of each kind."""

    rows: int
    given: Ints  # (c,) labels given in each class
    filled: Ints  # (c,) labels filled in
    empty: int  # rows left without a label
    lost: int  # rows without a label to which none leads
    estimated: Filled  # the rows filled in, as the estimate of their accuracy needs them

    @classmethod
    def of(
        cls, given: Ints, answers: Ints, probabilities: Floats, is_reached: NDArray[np.bool_], is_blend: bool = False
    ) -> "Tally":
        """Of rows whose given label and answer are places among c classes, or -1; probabilities (n, c).

        A blend has other experts for rows that no label reaches.
        """
        c = probabilities.shape[1]
        is_given = given >= 0
        filled = np.bincount(answers[~is_given & (answers >= 0)], minlength=c)
        empty, lost = int((answers < 0).sum()), int((~is_reached & ~is_given).sum())
        ours = np.where(is_given, -1, answers)
        estimated = Filled.of(ours, probabilities.max(axis=1), is_reached | is_blend, c)
        return cls(len(given), np.bincount(given[is_given], minlength=c), filled, empty, lost, estimated)

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            self.rows + other.rows,
            self.given + other.given,
            self.filled + other.filled,
            self.empty + other.empty,
            self.lost + other.lost,
            self.estimated + other.estimated,
        )


@dataclass
class Outcome:
    """Answers for the rows of one table, or for a sample of them and a tally of all."""

    target: str
    classes: list[Any]
    given: Ints  # (n,) place of the given label in classes, -1 where none was given
    probabilities: Floats  # (n, c)
    answers: Ints  # (n,) place of the label in classes, given ones kept; -1 where the row was left empty
    is_reached: NDArray[np.bool_]  # (n,) False where no label leads to the row
    held_out: HeldOut
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
        return self.whole or Tally.of(self.given, self.answers, self.probabilities, self.is_reached, bool(self.experts))

    @property
    def n_rows(self) -> int:
        return self.tally.rows

    def number(self, row: int) -> int:
        """The number of a row in the whole table, as people count."""
        return int(row if self.numbers is None else self.numbers[row]) + 1

    @cached_property
    def is_given(self) -> NDArray[np.bool_]:
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
    def is_empty(self) -> NDArray[np.bool_]:
        """(n,) rows that were left without a label."""
        return self.answers < 0

    @property
    def seed(self) -> int | None:
        """What seeded the features, or else the model."""
        return getattr(self.features, "seed", getattr(self.model, "random_state", None))

    @property
    def counts(self) -> tuple[Ints, Ints]:
        """(c,) labels given in each class, and (c,) labels filled in."""
        return self.tally.given, self.tally.filled

    def largest_classes(self, most: int) -> Ints:
        """Places of the classes if there are no more than that; otherwise of so many with most rows, largest first."""
        c = len(self.classes)
        return np.arange(c) if c <= most else np.argsort(-np.add(*self.counts), kind="stable")[:most]

    @cached_property
    def estimated_accuracy(self) -> tuple[float, float, float] | None:
        """Share of right answers among the rows filled in, and its interval, as ``greenlabel.labels.estimates`` has it.

        None where no label was held out, or no row filled in.
        """
        held, tally = self.held_out, self.tally
        if not len(held.codes):
            return None
        found = estimate_accuracy(held.codes, held.probabilities, tally.given, tally.estimated, self.only_confident)
        return None if found is None else (float(found), found.low, found.high)

    @property
    def hidden(self) -> tuple[int, int]:
        """Held-out labels that the estimate counts, and how many of them came out right.

        Those below the confidence that a row needs to be filled in say nothing about the rows filled in.
        """
        counted = self.held_out.probabilities.max(axis=1) >= self.only_confident
        return int(counted.sum()), int(self.held_out.is_right[counted].sum())

    def confusion(self) -> Ints:
        """(c, c) held-out rows by given class (row) and answered class (column)."""
        c = len(self.classes)
        return np.bincount(self.held_out.codes * c + self.held_out.answers, minlength=c * c).reshape(c, c)

    def reliability(self) -> list[dict[str, float]]:
        """Held-out rows by their confidence: how many, how sure, how often right. Empty bins are left out."""
        sure = self.held_out.probabilities.max(axis=1)
        place = np.minimum((sure * BINS).astype(int), BINS - 1)
        return [
            {
                "from": b / BINS,
                "to": (b + 1) / BINS,
                "rows": int((place == b).sum()),
                "confidence": float(sure[place == b].mean()),
                "accuracy": float(self.held_out.is_right[place == b].mean()),
            }
            for b in range(BINS)
            if (place == b).any()
        ]

    def least_sure(self, most: int = 20) -> Ints:
        """Rows without a given label, the least sure answer first: the ones to label next."""
        rows = np.flatnonzero(~self.is_given)
        return rows[np.lexsort((rows, self.margin[rows], self.confidence[rows]))][:most]

    def contradicted(self, most: int = 20) -> list[dict[str, Any]]:
        """Given labels for which the others say something else, the surest contradiction first."""
        wrong = np.flatnonzero(~self.held_out.is_right)
        sure = self.held_out.probabilities[wrong].max(axis=1)
        return [
            {
                "row": int(self.held_out.rows[i]),
                "given": self.classes[self.held_out.codes[i]],
                "others_say": self.classes[self.held_out.answers[i]],
                "confidence": float(self.held_out.probabilities[i].max()),
            }
            for i in wrong[np.argsort(-sure, kind="stable")][:most]
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
            "rows_not_reached": self.tally.lost,
            "estimated_accuracy": accuracy
            and {
                "share": accuracy[0],
                "low": accuracy[1],
                "high": accuracy[2],
                "level": LEVEL,
                "labels_held_out": self.hidden[0],
                "labels_held_out_right": self.hidden[1],
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
            **({"stream": self.stream} if self.stream else {}),
        }
