"""What is labelled, as the command line says it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from greenlabel.errors import ParameterError
from greenlabel.tables.io.files import check_reading


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    table: Path
    target: str
    images: str | None = None
    image_shape: str | None = None
    text: str | None = None
    vectors: Path | None = None
    classes: Sequence[str] = ()
    out: str | None = None
    force: bool = False
    features: Sequence[str] | None = None
    drop: Sequence[str] | None = None
    id: Sequence[str] | None = None
    unlabelled: Sequence[str] | None = None
    encoding: str | None = None
    sheet: str | None = None
    scale: str = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.images is not None and self.image_shape is not None:
            raise ParameterError("--images and --image-shape are both given; pictures come from one of them.")
        check_reading(self.table, self.encoding, self.sheet)
