"""Label and predict from file to file: the table at once or in blocks, and beside it the model and the report."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from greenlabel._common.optional import requires
from greenlabel.errors import TableError
from greenlabel.tables.io.blocks import must_stream, read_size
from greenlabel.tables.io.files import (
    WRITERS,
    after,
    check_apart,
    check_output,
    check_reading,
    has_no_types,
    left_out,
    read_shares,
    read_vectors,
    write_table,
)
from greenlabel.tables.labelling import TableResult, label_table, predict_table
from greenlabel.tables.model_files.saved import load_model
from greenlabel.tables.next_rows import suggest_stream, suggest_table
from greenlabel.tables.opening import AtOnce, Bar, InBlocks, in_blocks, read_in_blocks, style_of
from greenlabel.tables.passes import Run
from greenlabel.tables.streaming import METHODS_IN_BLOCKS, label_stream, predict_stream, refuse_in_blocks

with requires("tables"):
    import polars as pl


@dataclass(frozen=True)
class Files:
    """What is read, how, and where it goes: the options that label and predict share."""

    table: Path
    out: str | None
    vectors: Path | None
    encoding: str | None
    sheet: str | None
    scheduler: str | None
    memory_limit: str | None
    jobs: int | None
    force: bool

    def __post_init__(self) -> None:
        if self.out == "":  # of an unset variable, perhaps
            raise TableError("The name given by --out is empty; name a file, or leave --out away.")
        check_reading(self.table, self.encoding, self.sheet)

    def check_beside(self, *paths: Path | None) -> None:
        """Refuse files that cannot be written beside the table."""
        beside = some(*paths)
        for path in beside:
            check_output(path, self.force)
        check_apart(self.table, *beside)

    @cached_property
    def limit(self) -> int | None:
        """Bytes that the table may take in memory; None for what is usual."""
        return read_size(self.memory_limit)

    def must_stream(self) -> bool:
        return must_stream(str(self.table), self.scheduler, self.limit)

    def in_blocks(self, beside: list[Path], bar: Bar) -> AbstractContextManager[InBlocks]:
        return in_blocks(str(self.table), self.out, beside, self.scheduler, self.jobs, self.force, bar, self.encoding)

    def read_in_blocks(self, bar: Bar) -> AbstractContextManager[Run]:
        return read_in_blocks(str(self.table), self.scheduler, self.jobs, bar, self.encoding)

    def at_once(self, beside: list[Path]) -> AtOnce:
        whole = AtOnce(str(self.table), self.out, self.force, self.encoding, self.sheet)
        check_apart(whole.path, *beside)
        return whole

    def read_vectors(self) -> Any:
        return None if self.vectors is None else read_vectors(self.vectors)

    @property
    def title(self) -> str | None:
        """The table for the report; standard input has no name."""
        if str(self.table) == "-":
            return None
        return self.table.name if self.table.is_file() else str(self.table)


def some(*paths: Path | None) -> list[Path]:
    return [path for path in paths if path is not None]


# Labels


def label_files(
    files: Files,
    target: str,
    method: str,
    shares: str | None,
    options: dict[str, Any],
    save: Path | None,
    report: Path | None,
    bar: Bar,
) -> tuple[TableResult, list[str]]:
    """Label a table and write it, its model and its report. Returns the result, and the names of what was written."""
    beside = some(save, report)
    if files.must_stream():
        refuse_in_blocks(shares=shares, vectors=files.vectors, method=None if method in METHODS_IN_BLOCKS else method)
        result, out, left = label_in_blocks(files, beside, target, method, options, bar)
    else:
        result, out, left = label_at_once(files, beside, target, method, shares, options, bar)
    result.warnings += warn_left_out(out, left)
    if save is not None:
        with bar.stages("saving"), after([out], beside):
            result.save(save)
    if report is not None:
        result.seconds = bar.stages.seconds
        with bar.stages("report"), after([out, *beside[:-1]], [report]):
            result.report(report, title=files.title or target)
    return result, [out, *map(str, some(report, save))]


def label_in_blocks(
    files: Files, beside: list[Path], target: str, method: str, options: dict[str, Any], bar: Bar
) -> tuple[TableResult, str, list[str]]:
    """The result, the name of the output, and columns that it cannot hold."""
    with files.in_blocks(beside, bar) as blocks:
        result = label_stream(blocks.run, target, blocks.write, method=method, memory_limit=files.limit, **options)
    return result, blocks.name, blocks.left_out


def label_at_once(
    files: Files, beside: list[Path], target: str, method: str, shares: str | None, options: dict[str, Any], bar: Bar
) -> tuple[TableResult, str, list[str]]:
    """The same for a table that fits in memory."""
    whole = files.at_once(beside)
    with bar.stages("reading"):
        frame = whole.read()
        options["vectors"] = files.read_vectors()
        options["class_shares"] = shares if shares in (None, "labels", "balanced") else read_shares(Path(shares))
    filled, result = label_table(frame, target, method=method, announce=bar.stages, **options)
    with bar.stages("writing"):
        return result, whole.name, whole.write(filled)


# Rows to label next


def suggest_files(
    files: Files, target: str, n: int, method: str, options: dict[str, Any], bar: Bar
) -> tuple[Any, dict[str, Any], list[str]]:
    """The rows to label next as a table, written where a file is named. Returns it, the facts, and what was written."""
    path = Path(files.out or "-")
    check_output(path, files.force, WRITERS)
    check_apart(files.table, path)
    if files.must_stream():
        refuse_in_blocks(vectors=files.vectors, method=None if method in METHODS_IN_BLOCKS else method)
        with files.read_in_blocks(bar) as run:
            found, facts = suggest_stream(run, target, n, method=method, memory_limit=files.limit, **options)
        style = style_of(str(files.table), files.encoding)
    else:
        whole = AtOnce(str(files.table), files.out or "-", files.force, files.encoding, files.sheet)
        with bar.stages("reading"):
            frame, vectors = with_room_for(target, whole.read(), files.table), files.read_vectors()
        found, facts = suggest_table(frame, target, n, method=method, vectors=vectors, announce=bar.stages, **options)
        style = whole.style
    if files.out is None:
        return found, facts, []
    with bar.stages("writing"):
        write_table(path, found, style, has_no_types(files.table))
    facts["warnings"] += warn_left_out(files.out, left_out(path, found))
    return found, facts, [files.out]


def with_room_for(target: str, frame: Any, path: Path) -> Any:
    """Rows of a .npy file have no column that could hold labels: none of them has one."""
    if path.suffix.lower() != ".npy" or target in frame.columns:
        return frame
    return frame.with_columns(pl.lit(None, pl.String).alias(target))


# New rows


def predict_files(
    files: Files, model: Path, only_confident: float | None, bar: Bar
) -> tuple[dict[str, Any], list[str]]:
    """Label new rows and write them. Returns the facts, and the names of what was written."""
    predict = predict_in_blocks if files.must_stream() else predict_at_once
    facts, out, left = predict(files, model, only_confident, bar)
    facts["warnings"] += warn_left_out(out, left)
    return facts, [out]


def predict_in_blocks(
    files: Files, model: Path, only_confident: float | None, bar: Bar
) -> tuple[dict[str, Any], str, list[str]]:
    """The facts, the name of the output, and columns that it cannot hold."""
    refuse_in_blocks(vectors=files.vectors)
    with bar.stages("reading"):
        saved = load_model(model)
    with files.in_blocks([model], bar) as blocks:
        facts = predict_stream(blocks.run, saved, blocks.write, only_confident)
    return facts, blocks.name, blocks.left_out


def predict_at_once(
    files: Files, model: Path, only_confident: float | None, bar: Bar
) -> tuple[dict[str, Any], str, list[str]]:
    """The same for new rows that fit in memory."""
    whole = files.at_once([model])
    with bar.stages("reading"):
        saved = load_model(model)
        frame = whole.read()
        vectors = files.read_vectors()
    with bar.stages("labels"):
        filled, facts = predict_table(saved, frame, vectors=vectors, only_confident=only_confident)
    with bar.stages("writing"):
        return facts, whole.name, whole.write(filled)


def warn_left_out(out: str, columns: list[str]) -> list[str]:
    if not columns:
        return []
    names = ", ".join(map(repr, columns))
    return [f"Plain cells alone fit into {out}: column {names} is left out; write .parquet to keep it."]
