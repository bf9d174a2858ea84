"""A table to label by hand: read, scaled and shown as ``greenlabel label`` reads it.

source = open_source(Options(Path("flowers.csv"), "species"), stages)
source.X            (n, d) features
source.given        [(row, class), …] labels that the table came with
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.optional import requires
from greenlabel._common.stages import Stages
from greenlabel.annotate.source.cells import Cells, first_words, full_text
from greenlabel.annotate.source.files import Fingerprint, Output, check_can_annotate, folder_of
from greenlabel.annotate.source.options import Options
from greenlabel.annotate.source.picture_columns import NoPictures, PathPictures, Pictures, pictures_of
from greenlabel.annotate.source.pictures import Picture, read_shape
from greenlabel.annotate.source.saving import Saver
from greenlabel.errors import LabelError, ParameterError, TableError
from greenlabel.tables.columns.features import TableFeatures, choose_columns, matching
from greenlabel.tables.columns.rounds import Round, added_names, as_written, check_names_free, read_round
from greenlabel.tables.columns.targets import find_labels
from greenlabel.tables.frames import with_vectors
from greenlabel.tables.io.files import nearest_name, read_vectors
from greenlabel.tables.labelling import as_list

with requires("tables"):
    import polars as pl

LOOKED_AT = 20  # rows whose pictures are looked for at the start
MAX_CLASSES = 254  # a byte on the map; one value is kept for "none"


@dataclass
class TableSource:
    """A table as a session needs it."""

    name: str
    target: str
    fingerprint: str
    X: Any  # (n, d) features
    given: list[tuple[int, str]]
    classes: list[str]
    kind: str
    notes: list[str]
    cells: Cells
    pictures: Pictures
    full: pl.Series | None  # the text that is shown in full
    saver: Saver
    n: int = field(init=False)

    def __post_init__(self) -> None:
        self.n = self.X.shape[0]

    @property
    def out(self) -> str:
        return self.saver.name

    def fields(self, row: int) -> list[tuple[str, str]]:
        return self.cells.fields(row)

    def text(self, row: int) -> str | None:
        return None if self.full is None else full_text(self.full, row)

    def words(self, row: int) -> str | None:
        """By which a row is recognised in a list, where rows are texts."""
        text = self.text(row)
        return None if text is None else first_words(text)

    def picture(self, row: int) -> Picture | None:
        return self.pictures.of(row)

    def search(self, words: str, limit: int) -> list[int]:
        return self.cells.search(words, limit)

    def save(self, labels: dict[int, str], ignored: set[int], report: bool, model: bool) -> dict[str, Any]:
        return self.saver.save(labels, ignored, report, model)

    def finish_writing(self, seconds: float) -> bool:
        """Wait for files that are being written; none is begun after that."""
        return self.saver.writing.acquire(timeout=seconds)


def open_source(options: Options, stages: Stages) -> TableSource:
    """Read a table and turn its columns into features."""
    check_can_annotate(options.table)
    output = Output(options.table, options.out, options.force, options.encoding, options.sheet)
    with stages("reading"):
        fingerprint = Fingerprint.of(options.table, options.sheet)
        frame = output.whole.read()
        vectors = None if options.vectors is None else read_vectors(options.vectors)
    with stages("features"):
        return source_of(frame, vectors, options, fingerprint, output)


def source_of(
    frame: pl.DataFrame, vectors: Any, options: Options, fingerprint: Fingerprint, output: Output
) -> TableSource:
    frame, notes = with_target(frame, options.target)
    check_columns(frame, options)
    whole = frame if vectors is None else with_vectors(frame, vectors)
    check_names_free(whole.columns, options.target)
    labels = read_round(whole, options.target, as_list(options.unlabelled))
    table = whole.drop(added_names(whole.columns, options.target))
    names = feature_names(table, options)
    steps = TableFeatures(options.scale, options.seed)
    X = fit_features(table, names, steps, options)
    shape = None if options.image_shape is None else read_shape(options.image_shape)
    pictures = pictures_of(table, names, options.images, shape, folder_of(options.table))
    notes += missing_pictures(pictures, options, whole.height)
    given, classes = given_labels(labels, options)
    elsewhere = {name for name in (options.text, options.images) if name is not None}
    hidden = {options.target, *pictures.columns} - elsewhere
    return TableSource(
        name=options.table.name,
        target=options.target,
        fingerprint=fingerprint.text,
        X=X,
        given=given,
        classes=classes,
        kind="text" if options.text else "fields" if isinstance(pictures, NoPictures) else "images",
        notes=notes,
        cells=Cells(table, elsewhere, hidden),
        pictures=pictures,
        full=None if options.text is None else table[options.text],
        saver=Saver(frame, table, labels, steps, X, options, fingerprint, output),
    )


def with_target(frame: pl.DataFrame, target: str) -> tuple[pl.DataFrame, list[str]]:
    """The column to fill may be missing as yet; then it is added, unless the name looks misspelt."""
    if target in frame.columns:
        return frame, []
    advice = nearest_name(target, frame.columns)
    if advice.startswith("did you mean"):
        raise TableError(f"The table has no column {target!r}; {advice}")
    empty = pl.Series(target, [None] * frame.height, dtype=pl.String)
    return frame.with_columns(empty), [f"The table has no column {target!r} yet; it is added when you save."]


def missing_pictures(pictures: Pictures, options: Options, n: int) -> list[str]:
    """A sentence where none of the first pictures is there: paths are often meant from another folder."""
    if options.images is None or any(pictures.of(row) is not None for row in range(min(n, LOOKED_AT))):
        return []
    place = (
        "looked for below the folder of the table" if isinstance(pictures, PathPictures) else "PNG, JPEG, GIF or WebP"
    )
    return [f"None of the first pictures in {options.images!r} can be shown; they are {place}."]


def check_columns(frame: pl.DataFrame, options: Options) -> None:
    for option, name in (("--images", options.images), ("--text", options.text)):
        if name is not None and name not in frame.columns:
            raise TableError(f"{option} {name!r} matches no column; {nearest_name(name, frame.columns)}")
        if name == options.target:
            raise ParameterError(f"{option} and --target name the same column, {name!r}; give each its own.")


def feature_names(table: pl.DataFrame, options: Options) -> list[str]:
    """Columns to learn from; where pictures lie says nothing about what they show."""
    chosen = choose_columns(
        table.columns, options.target, as_list(options.features), as_list(options.drop), as_list(options.id)
    )
    return [name for name in chosen if name != options.images]


def fit_features(table: pl.DataFrame, names: list[str], steps: TableFeatures, options: Options) -> NDArray[np.floating]:
    if options.images is not None and not names:
        raise TableError(
            f"Beside {options.images!r} no column is left to learn from; give embeddings of the pictures by --vectors."
        )
    return steps.fit_transform(table, names, matching(table.columns, as_list(options.features), "--features"))


def given_labels(labels: Round, options: Options) -> tuple[list[tuple[int, str]], list[str]]:
    """Labels that the table came with, and the classes: those of the command line, then others as they appear."""
    found = find_labels(labels.labels, as_list(options.unlabelled))
    names = [str(name) for name in as_written(found.labels).to_list()]
    if len(names) > MAX_CLASSES:
        raise LabelError(
            f"Column {options.target!r} holds {len(names):,} classes ({names[0]}, {names[1]}, …), a map can show "
            f"{MAX_CLASSES} at most; name the column of classes by --target."
        )
    rows = np.flatnonzero(found.codes >= 0)
    given = [(int(row), names[found.codes[row]]) for row in rows]
    return given, list(dict.fromkeys([*options.classes, *names]))
