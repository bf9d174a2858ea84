"""The demo: 1,797 handwritten digits as a table of pixels without any label."""

from pathlib import Path

import numpy as np

from greenlabel._common.files import whole_file
from greenlabel._common.optional import requires
from greenlabel.annotate.source.options import Options
from greenlabel.datasets import digits
from greenlabel.errors import TableError

with requires("tables"):
    import polars as pl

FOLDER = Path("greenlabel-demo")
CLASSES = [*"1234567890"]  # so that the key of a digit is the digit; 0 comes last


def demo_options(folder: Path, out: str | None = None, force: bool = False, seed: int = 0) -> Options:
    """The table of the demo, written if it is not there yet."""
    path = folder / "digits.csv"
    try:
        write_digits(path)
    except OSError as error:
        raise TableError(
            f"The demo keeps its digits in {folder}, which cannot be written here ({error.strerror}); run it in a "
            "folder of your own that has room."
        ) from error
    return Options(path, "digit", image_shape="8x8", classes=CLASSES, out=out, force=force, seed=seed)


def write_digits(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    X, _ = digits()
    pixels = pl.DataFrame(X.astype(np.uint8), schema=[f"pixel_{i}" for i in range(X.shape[1])])
    content = pixels.with_columns(pl.lit("").alias("digit")).write_csv().encode()
    if not path.exists() or path.read_bytes() != content:
        with whole_file(path) as draft:
            draft.write_bytes(content)
