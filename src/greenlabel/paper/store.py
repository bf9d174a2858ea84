"""Results on disk: one JSON line per trial, written as soon as it is known, so that a run goes on where it stopped.

    {"protocol": 1, "content": "…", "data": "USPS", "method": "GF(A)", …, "result": {"accuracy": …}}

All but the result is the key. ``protocol`` and ``content`` (the checksum of the data) keep results apart that were
taken in another way or from other files.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock

from greenlabel._common.files import whole_file

PROTOCOL = 1  # raise it when a trial means something else than before

Result = dict[str, float]


@dataclass(frozen=True, order=True)
class Trial:
    """One method on one data set with one draw of the labelled rows."""

    data: str
    method: str
    per_class: int
    seed: int
    anchors: int = 0  # 0: the method's own


class Store:
    """Results of trials by their key. A line that an interruption left unfinished is dropped."""

    def __init__(self, path: Path):
        self._path, self._lock = path, Lock()
        self._results: dict[str, Result] = {}
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
        whole = [line for line in lines if line.endswith("\n") and _is_record(line)]
        if whole != lines:
            with whole_file(path) as draft:
                draft.write_text("".join(whole), encoding="utf-8")
        for line in whole:
            record = json.loads(line)
            result = record.pop("result")
            self._results[json.dumps(record, sort_keys=True)] = result

    def get(self, trial: Trial, content: str) -> Result | None:
        return self._results.get(json.dumps(_key(trial, content), sort_keys=True))

    def put(self, trial: Trial, content: str, result: Result) -> None:
        key = _key(trial, content)
        line = json.dumps({**key, "result": result})
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
            self._results[json.dumps(key, sort_keys=True)] = result


def _key(trial: Trial, content: str) -> dict[str, str | int]:
    return {"protocol": PROTOCOL, "content": content, **asdict(trial)}


def _is_record(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict) and "result" in json.loads(line)
    except json.JSONDecodeError:
        return False
