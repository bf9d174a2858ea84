"""Passes over a table in blocks: the steps that a block of rows goes through, and where they are done."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.optional import requires
from greenlabel._common.stages import START, Stages
from greenlabel.blocks.rows import Blocks, Reader, identity
from greenlabel.tables.columns.features import TableFeatures
from greenlabel.tables.columns.rounds import read_round
from greenlabel.tables.columns.targets import Found, find_labels

with requires("tables"):
    import polars as pl

Ints = NDArray[np.integer]


@dataclass(frozen=True)
class FindLabels:
    target: str
    unlabelled: list[str]

    def __call__(self, rows: Sequence[int], frame: pl.DataFrame) -> tuple[Found, Ints, int]:
        """The labels, how many are given, checked and changed, and how many cells have no record of that."""
        found = read_round(frame, self.target, self.unlabelled, rows)
        return find_labels(found.labels, self.unlabelled), found.counts, found.unrecorded


@dataclass(frozen=True)
class MakeFeatures:
    features: TableFeatures

    def __call__(self, rows: Sequence[int], frame: pl.DataFrame) -> Any:
        return self.features.transform(frame, rows, strict=False)[0]


@dataclass(frozen=True)
class HoldLabels:
    """Whether any row has a label."""

    target: str
    unlabelled: list[str]

    def __call__(self, rows: Sequence[int], frame: pl.DataFrame) -> bool:
        return bool(read_round(frame, self.target, self.unlabelled, rows).origin.any())


@dataclass(frozen=True)
class PredictNewRows:
    """Probabilities, whether a label reaches each row, and how many values were never seen."""

    features: TableFeatures
    model: Any

    def __call__(self, rows: Sequence[int], frame: pl.DataFrame) -> tuple[Any, Any, dict[str, int]]:
        X, unseen = self.features.transform(frame, rows, strict=False)
        return *self.model.predict_proba_reached(X), unseen


class Watched(Blocks):
    """Blocks of a source that call ``tick`` when they are read."""

    def __init__(self, source: Blocks, tick: Callable[[], None]):
        super().__init__(np.diff(source.starts).tolist())
        self._source, self._tick = source, tick

    def reader(self, i: int) -> Reader:
        return partial(self._read, self._source.reader(i))

    def _read(self, reader: Reader) -> Any:
        block = reader()
        self._tick()
        return block

    def finish(self) -> None:
        self._source.finish()


@dataclass
class Run:
    """One pass after the other over a table, here or on a cluster, with the clock and the progress of all."""

    table: Any  # blocks of frames, as open_table gives them
    on_cluster: bool = False
    announce: Callable[[str], Any] | None = None
    tick: Callable[[], None] = lambda: None
    stages: Stages = field(init=False)

    def __post_init__(self) -> None:
        self.stages = Stages.of(self.announce)

    def columns(self, names: list[str]) -> Blocks:
        """Blocks of some columns, read by the workers where there are some."""
        source = self.table.only(names)
        if not self.on_cluster:
            return Watched(source, self.tick)
        from greenlabel.blocks.on_dask import distribute

        return distribute(source)

    def beside(self, predictions: Iterator[Any]) -> Iterator[tuple[range, pl.DataFrame, Any]]:
        """All columns of each block, read here, beside its predictions."""
        whole = zip(Watched(self.table, self.tick).map(identity), predictions, strict=True)
        for i, (frame, prediction) in enumerate(whole):
            yield self.table.rows(i), frame, prediction

    def cut(self, predictions: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """Arrays of predictions in the blocks of the table; those of few rows come all at once."""
        first = next(predictions)
        if len(self.table) > 1 and len(first[0]) == self.table.n:
            yield from (
                tuple(part[rows.start : rows.stop] for part in first)
                for rows in map(self.table.rows, range(len(self.table)))
            )
            return
        yield first
        yield from predictions

    def facts(self, **more: Any) -> dict[str, Any]:
        """Speed over all stages so far, the imports aside."""
        taken = self.stages.seconds
        seconds = max(sum(taken.values()) - taken.get(START, 0.0), 1e-9)
        speed = {"rows_per_second": self.table.n / seconds, "bytes_per_second": self.table.n_bytes / seconds}
        return {"blocks": len(self.table), **speed, **more}
