"""What goes over the wire: JSON in, JSON and little-endian arrays out; nothing that comes in is trusted.

frame      uint32 J, J bytes of JSON (padded with blanks so that 4 + J is a multiple of 4), n classes, n confidences
positions  float32 (n, 2)
"""

import asyncio
import json
import re
import struct
from typing import Any

import numpy as np

from greenlabel._common.optional import requires

with requires("annotate"):
    from starlette.requests import ClientDisconnect, Request

SMALL_BODY = 64 * 1024  # bytes of a request beside its rows
BODY_SECONDS = 30.0  # in which a request must have come in
MAX_LISTED = 10_000  # rows of one reply


class Refusal(Exception):
    """A request that is not done, with its status and one sentence."""

    def __init__(self, status: int, sentence: str, headers: dict[str, str] | None = None):
        super().__init__(sentence)
        self.status, self.sentence, self.headers = status, sentence, headers or {}


# Out


def frame_bytes(state: dict[str, Any], classes: Any, confidence: Any) -> bytes:
    """A state and the two bytes of each row."""
    text = as_json(state)
    text += b" " * (-(4 + len(text)) % 4)
    return b"".join([struct.pack("<I", len(text)), text, as_bytes(classes), as_bytes(confidence)])


def as_bytes(values: Any) -> bytes:
    return np.ascontiguousarray(values, dtype=np.uint8).tobytes()


def position_bytes(positions: Any) -> bytes:
    return np.ascontiguousarray(positions, dtype="<f4").tobytes()


def as_json(value: Any) -> bytes:
    """JSON as UTF-8. NaN would be no JSON, so it is an error of ours."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=plain).encode(
        "utf-8", "replace"
    )


def plain(value: Any) -> Any:
    """Numbers and arrays of NumPy as Python's own."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no JSON")


# In


def max_body(n: int) -> int:
    """Bytes that a request about n rows may have: all row numbers, each with a comma and a blank."""
    return SMALL_BODY + n * (len(str(n)) + 2)


async def read_body(request: Request, limit: int, seconds: float = BODY_SECONDS) -> bytes:
    """The body; one that is too long is refused as soon as that is known, however it is sent."""
    announced = request.headers.get("content-length", "")
    too_long = Refusal(413, f"The request is longer than {limit:,} bytes; send fewer rows.", {"Connection": "close"})
    if announced.isdecimal() and int(announced[:20]) > limit:
        raise too_long
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                body += part
                if len(body) > limit:
                    raise too_long
    except TimeoutError:
        raise Refusal(408, "The request did not come in in time; send it again.", {"Connection": "close"}) from None
    except ClientDisconnect:
        raise Refusal(400, "The connection ended before the request did.") from None
    return bytes(body)


def read_json(body: bytes) -> dict[str, Any]:
    """A JSON object, without anything that two readers could understand in two ways."""
    try:
        found = json.loads(body.decode("utf-8"), object_pairs_hook=once_each, parse_constant=no_constant)
    except RecursionError:
        raise Refusal(400, "The JSON is nested too deeply.") from None
    except UnicodeDecodeError:
        raise Refusal(400, "The request is not UTF-8.") from None
    except ValueError as error:
        reason = str(error) if isinstance(error, json.JSONDecodeError | UnclearJson) else "a number is too long"
        raise Refusal(400, f"The request is no JSON that can be read ({reason}).") from None
    if not isinstance(found, dict):
        raise Refusal(400, f"The request must be a JSON object, got {kind_of(found)}.")
    return found


class UnclearJson(ValueError):
    pass


def once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise UnclearJson("a name stands twice in an object")
    return found


def no_constant(name: str) -> Any:
    raise UnclearJson(f"{name} is no JSON")


def check_names(values: dict[str, Any], known: set[str]) -> None:
    if unknown := [name for name in values if name not in known]:
        raise Refusal(400, f"{shown(unknown[0])} is not known here; known are {', '.join(sorted(known))}.")


def check_rows(rows: Any, n: int) -> list[int]:
    """Row numbers from 0 to n - 1."""
    if not isinstance(rows, list):
        raise Refusal(400, f"rows must be a list of row numbers, got {kind_of(rows)}.")
    if rows and (set(map(type, rows)) != {int} or min(rows) < 0 or max(rows) >= n):
        for row in rows:
            check_row(row, n)
    return rows


def check_row(row: Any, n: int) -> int:
    if type(row) is not int:  # True and 1.0 are no row numbers
        raise Refusal(400, f"A row must be a whole number, got {kind_of(row)}.")
    if not 0 <= row < n:
        raise Refusal(404, f"There is no row {shown(row)}; rows are numbered from 0 to {n - 1}.")
    return row


def check_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise Refusal(400, f"{name} must be true or false, got {kind_of(value)}.")
    return value


def number_in(text: str, what: str) -> int:
    """A number in an address."""
    if not re.fullmatch(r"[0-9]{1,12}", text, re.ASCII):
        raise Refusal(404, f"{what} must be a whole number of at least 0, got {shown(text)}.")
    return int(text)


def count_in(request: Request, default: int) -> int:
    """How many rows are asked for, by ?n=."""
    return min(number_in(request.query_params.get("n", str(default)), "n"), MAX_LISTED)


KINDS = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}


def kind_of(value: Any) -> str:
    return KINDS.get(type(value), "null") if not isinstance(value, float) else "a number that is not whole"


def shown(value: Any) -> str:
    """A value that came in, short enough for a sentence."""
    if isinstance(value, int) and abs(value) > 10**15:
        return "of that number"
    text = value if isinstance(value, str) else str(value)
    return ascii(text[:40]) if isinstance(value, str) else text
