"""Pictures of rows: files that a column names, bytes that it holds, or pixels that columns are.

A file is shown only if it lies in the folder of the table, whatever its name says and wherever links lead, and if its
content is that of a picture. SVG is a document that can hold scripts, so it is none here.
"""

import os
import re
import stat
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel.errors import ParameterError

MAX_BYTES = 20 * 2**20  # of a picture
MAX_SIDE = 4096  # of pixels drawn from columns
SIGNS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}

Picture = tuple[str, bytes]  # media type, content


def media_type(content: bytes) -> str | None:
    """The type of a picture by how it begins; None for anything else."""
    for sign, media in SIGNS.items():
        if content.startswith(sign):
            return media
    return "image/webp" if content[:4] == b"RIFF" and content[8:12] == b"WEBP" else None


def as_picture(content: bytes | None) -> Picture | None:
    if content is None or len(content) > MAX_BYTES:
        return None
    media = media_type(content)
    return None if media is None else (media, content)


def read_picture(folder: Path, name: str) -> Picture | None:
    """The picture in a file of a folder; None for one that lies elsewhere, is too large, or is no picture."""
    try:
        real = (folder / name).resolve(strict=True)
        if not real.is_relative_to(folder.resolve()):
            return None
        # Not by name again: a link that is put in its place meanwhile is not followed, and a pipe does not block.
        handle = os.open(
            real, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        )
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return None
            return as_picture(file.read(MAX_BYTES + 1))
    except (OSError, ValueError):  # not there, not allowed; a name with a zero byte
        return None


# Pixels


def read_shape(text: str) -> tuple[int, int]:
    """Height and width in 28x28."""
    found = re.fullmatch(r"\s*(\d{1,4})\s*[xX×]\s*(\d{1,4})\s*", text)
    shape = (int(found[1]), int(found[2])) if found else (0, 0)
    if not all(0 < side <= MAX_SIDE for side in shape):
        raise ParameterError(f"--image-shape {text} is no shape; give height and width in pixels, like 28x28.")
    return shape


def as_grey(values: Any, low: float, high: float) -> NDArray[np.uint8]:
    """Values from low to high as 0 to 255; all 0 where they are equal, and what is no number is 0."""
    width = high - low
    scaled = (np.asarray(values, dtype=np.float64) - low) * (255 / width if width > 0 else 0.0)
    return np.clip(np.nan_to_num(scaled), 0, 255).round().astype(np.uint8)


def png(grey: NDArray[np.uint8]) -> bytes:
    """A grey picture (h, w) as PNG; every line begins with its filter, 0 for none."""
    h, w = grey.shape
    lines = np.hstack([np.zeros((h, 1), np.uint8), grey]).tobytes()
    header = struct.pack(">IIBBBBB", w, h, 8, 0, 0, 0, 0)  # 8 bits, grey
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(lines, 6)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(name, content) for name, content in parts)


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
