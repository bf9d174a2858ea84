"""Text of other people's data, such as names of classes: made printable, and short."""

import re
import unicodedata
from typing import Any

JOINERS = "\u200d\ufe0f\u20e3"  # joiner, and marks that belong to the sign before them
# Control characters, halves of a pair, and marks that turn the direction of the text around them
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]+")


def printable(value: Any) -> str:
    """A value as text on one line that does nothing to a terminal; of None, nothing."""
    return " ".join(UNPRINTABLE.sub(" ", "" if value is None else str(value)).split())


def shorten(text: str, max_length: int, tail: int = 0) -> str:
    """Text of at most ``max_length`` characters, ``tail`` of them from its end; letters keep their marks."""
    if len(text) <= max_length:
        return text
    head = max_length - 1 - tail
    end = len(text) - tail
    while head > 0 and _is_joined(text, head):
        head -= 1
    while end < len(text) and _is_joined(text, end):
        end += 1
    return f"{text[:head].rstrip()}…{text[end:].lstrip()}"


def without_middle(text: str, max_length: int) -> str:
    """Text that loses its middle where it is long, for names often differ in their last letters."""
    return shorten(text, max_length, tail=max_length // 3)


def _is_joined(text: str, index: int) -> bool:
    """Whether the character at an index makes one letter or picture with the one before it."""
    return bool(unicodedata.combining(text[index])) or text[index] in JOINERS or text[index - 1] == JOINERS[0]
