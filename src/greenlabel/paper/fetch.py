"""Downloads of the public data: resumed where they stopped, checked, and unpacked. The only file with a network."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen
from zipfile import BadZipFile, ZipFile

from greenlabel._common.files import whole_file
from greenlabel.errors import DataError
from greenlabel.paper.sources import SOURCES, Data, find, load, load_public, save

BLOCK = 1 << 16
Progress = Callable[[str, int, int | None], None]  # file, bytes so far, bytes in all where the server says


def fetch(name: str, folder: Path, progress: Progress) -> Data:
    """Bring a data set into the folder, check it, and keep it as one .npz file; one that is there is only read."""
    source = SOURCES[name]
    if (folder / f"{source.stem}.npz").exists():
        return load(name, folder)
    own_folder = folder / source.stem
    own_folder.mkdir(parents=True, exist_ok=True)
    for download in source.downloads:
        brought = download.members or (download.file,)
        if all(find(folder, source.stem, file.removesuffix(".gz").removesuffix(".bz2")) for file in brought):
            continue
        archive = own_folder / download.file
        transfer(download.url, archive, progress)
        check_file(archive, download.md5)
        if download.members:
            unpack(archive, download.members, own_folder)
            archive.unlink()
    data = load_public(name, folder)
    if source.content is not None and data.content != source.content:
        raise DataError(
            f"{name} as downloaded differs from the copy that greenlabel was tested on (checksum {data.content}, "
            f"expected {source.content}); delete {', '.join(source.files)} in {own_folder} and fetch it again."
        )
    save(data, folder)
    return data


def transfer(url: str, path: Path, progress: Progress) -> None:
    """Download to a .part file, going on where an earlier one stopped; the file takes its name when it is whole."""
    if path.exists():
        return
    part = path.with_name(f"{path.name}.part")
    have = part.stat().st_size if part.exists() else 0
    request = Request(url, headers={"User-Agent": "greenlabel", **({"Range": f"bytes={have}-"} if have else {})})
    try:
        with urlopen(request, timeout=30) as reply:
            if reply.status != 206:  # the server sends all of it
                have = 0
            length = reply.headers.get("Content-Length")
            total = have + int(length) if length else None
            with part.open("ab" if have else "wb") as file:
                while block := reply.read(BLOCK):
                    have += file.write(block)
                    progress(path.name, have, total)
    except HTTPError as error:
        if error.code != 416:  # 416: nothing is left to send
            raise DataError(f"{url} answers {error.code} {error.reason}; {_by_hand(url, path)}.") from error
        total = have
    except OSError as error:
        reason = error.reason if isinstance(error, URLError) else error
        host = urlsplit(url).hostname
        raise DataError(
            f"no connection to {host} ({reason}); try again where there is a network (what came is kept), "
            f"or {_by_hand(url, path)}."
        ) from error
    if total is not None and have < total:
        raise DataError(f"{url} broke off after {have:,} of {total:,} bytes; run the command again to go on.")
    part.replace(path)


def _by_hand(url: str, path: Path) -> str:
    return f"download {url} by hand and put it at {path}"


def check_file(path: Path, md5: str | None) -> None:
    """Compare with the publisher's checksum; a file that fails is removed, so that it is not taken for a good one."""
    if md5 is None:
        return
    with path.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if found != md5:
        path.unlink()
        raise DataError(f"{path.name} is damaged (md5 {found}, expected {md5}) and was removed; fetch it again.")


def unpack(archive: Path, members: tuple[str, ...], folder: Path) -> None:
    """Take the wanted files out of a ZIP archive, whatever folder they lie in there."""
    try:
        with ZipFile(archive) as zipped:
            names = {name.rpartition("/")[2]: name for name in zipped.namelist()}
            for member in members:
                if member not in names:
                    raise DataError(f"{archive.name} holds no {member}; it holds {', '.join(sorted(names)[:5])}.")
                with whole_file(folder / member) as draft, draft.open("wb") as file:
                    shutil.copyfileobj(zipped.open(names[member]), file)
    except BadZipFile as error:
        archive.unlink()
        raise DataError(f"{archive.name} is damaged ({error}) and was removed; fetch it again.") from error
