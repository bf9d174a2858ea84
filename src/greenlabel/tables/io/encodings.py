"""Encodings of text: what is not UTF-8 becomes it, by the name that a person gives.

In blocks a file is cut at the bytes of line ends, quotes and separators, so these must mean there what they mean in
ASCII: latin-1, cp1252, shift-jis and most others, but not UTF-16.
"""

import codecs
from difflib import get_close_matches
from encodings.aliases import aliases

from greenlabel.errors import ParameterError, TableError

UTF_8 = "utf-8"
USUAL = (
    "utf-8",
    "utf-16",
    "latin-1",
    "cp1252",
    "cp1250",
    "cp1251",
    "mac-roman",
    "shift-jis",
    "gb18030",
    "big5",
    "euc-kr",
)
FOREIGN = "éжあ中한"  # letters that an encoding beyond ASCII has one of


def check_encoding(name: str | None) -> str:
    """Python's own name of an encoding; UTF-8 if none is given."""
    if name is None:
        return UTF_8
    try:
        found = codecs.lookup(name)
        "".encode(found.name)  # raises where this is a codec of another kind
        return found.name
    except (LookupError, ValueError):
        close = get_close_matches(name.lower().replace("_", "-"), [*USUAL, *aliases], n=1, cutoff=0.75)
        advice = f"did you mean {close[0]}?" if close else f"usual ones are {', '.join(USUAL)}."
        raise ParameterError(f"--encoding {name} is unknown; {advice}") from None


def check_cuttable(encoding: str) -> None:
    """Refuse an encoding in which a byte of ASCII may mean something else."""
    plain = bytes(range(128))
    if encoding != UTF_8 and not (_decodes_to_itself(plain, encoding) and _marks_letters(encoding)):
        raise ParameterError(
            f"--encoding {encoding} is not for a table that is read in blocks; save the table as UTF-8, or give it "
            "more memory (--memory-limit), without --scheduler."
        )


def _decodes_to_itself(plain: bytes, encoding: str) -> bool:
    try:
        return plain.decode(encoding) == plain.decode("ascii")
    except UnicodeError:
        return False


def _marks_letters(encoding: str) -> bool:
    """Whether letters beyond ASCII begin with a byte beyond ASCII; otherwise a sign before them changes all bytes."""
    known = [letter.encode(encoding, "ignore") for letter in FOREIGN]
    return all(not code or code[0] >= 128 for code in known)


def _has_letters_of_bytes(encoding: str) -> bool:
    """Whether bytes beyond ASCII are letters one by one: UTF-8 is then such text too, but hardly ever the reverse."""
    beyond = bytes(range(128, 256))
    return len(beyond.decode(encoding, "replace")) == len(beyond) and bool(beyond.decode(encoding, "ignore"))


def _is_utf8(raw: bytes) -> bool:
    try:
        return raw.decode() is not None
    except UnicodeDecodeError:
        return False


def as_utf8(raw: bytes, encoding: str, name: str) -> bytes:
    """Text of another encoding as UTF-8; ``name`` is that of the table."""
    if encoding == UTF_8:
        return raw
    if _has_letters_of_bytes(encoding) and not raw.isascii() and _is_utf8(raw):
        raise TableError(f"{name} is UTF-8 text, as greenlabel writes it; leave --encoding {encoding} out.")
    try:
        return raw.decode(encoding).encode()
    except UnicodeDecodeError as error:
        raise TableError(
            f"{name} is no {encoding} text (it holds the byte {raw[error.start]:#04x}); name another --encoding."
        ) from error
    except UnicodeError as error:
        raise TableError(f"{name} is no {encoding} text ({error}); name another --encoding.") from error
