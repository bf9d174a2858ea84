"""Files that are not there, refused before any library loads."""

from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

from greenlabel.errors import ModelFileError, TableError

STANDARD = Path("-")


def check_table(path: Path) -> None:
    """Refuse a table that is not there; a pattern is looked at later."""
    if path != STANDARD and not any(mark in str(path) for mark in "*?[") and is_missing(path):
        raise TableError(f"{path} does not exist{nearest_file(path)}")


def check_model(path: Path) -> None:
    if is_missing(path):
        raise ModelFileError(f"{path} does not exist; give a file written by greenlabel label --save.")


def is_missing(path: Path) -> bool:
    """Whether there is nothing; what cannot be looked at may be there, and reading it will say what is wrong."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def nearest_file(path: Path) -> str:
    """The end of a sentence on a file that is not there. An ending that is the same makes no two names alike."""
    with suppress(OSError):
        names = [p.name for p in path.parent.iterdir()]
        stems = get_close_matches(path.stem, {Path(name).stem for name in names})
        close = get_close_matches(path.name, [name for name in names if Path(name).stem in stems], n=1)
        return f"; did you mean {path.with_name(close[0])}?" if close else "; check the name."
    return "; check the name."
