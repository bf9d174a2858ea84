"""Carry out trials: those that the store lacks, grouped so that each graph is built once for all its trials."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from greenlabel.errors import MemoryLimitError
from greenlabel.paper.checks import CHECKS, run_checks
from greenlabel.paper.protocol import run_trials
from greenlabel.paper.sources import Data, MissingDataError, load
from greenlabel.paper.store import Result, Store, Trial

Results = dict[Trial, Result]
SLOWEST = "GF"  # eigendecompositions come last, so that an interrupted run has all the rest
REFUSED = "refused"  # key of the result of a trial that did not fit in memory


def available(names: Iterable[str], folder: Path) -> dict[str, Data]:
    """The data sets that the folder holds (or that are generated)."""
    found = {}
    for name in dict.fromkeys(names):
        try:
            found[name] = load(name, folder)
        except MissingDataError:
            continue  # the tables say so
    return found


def carry_out(
    wanted: Iterable[Trial], data: dict[str, Data], store: Store, jobs: int, done: Callable[[Trial], None]
) -> Results:
    """Results of all wanted trials whose data is there. ``done`` is called for each, kept ones included."""
    results: Results = {}
    batches: dict[tuple[str, str, int], list[Trial]] = defaultdict(list)
    for trial in dict.fromkeys(trial for trial in wanted if trial.data in data):
        kept = store.get(trial, data[trial.data].content)
        if kept is None:
            batches[trial.data, trial.method, trial.anchors].append(trial)
        else:
            results[trial] = kept
            done(trial)

    def work(batch: list[Trial]) -> Results:
        fresh = {}
        for trial, result in run_batch(data[batch[0].data], batch):
            if REFUSED not in result:
                store.put(trial, data[trial.data].content, result)
            fresh[trial] = result
            done(trial)
        return fresh

    order = sorted(batches.values(), key=lambda batch: batch[0].method == SLOWEST)
    if jobs == 1:
        for batch in order:
            results |= work(batch)
        return results
    with ThreadPoolExecutor(jobs) as pool:  # the work is in compiled code, which runs side by side
        for future in as_completed([pool.submit(work, batch) for batch in order]):
            results |= future.result()
    return results


def run_batch(data: Data, batch: list[Trial]) -> Iterator[tuple[Trial, Result]]:
    """Trials of one method on one data set; where its matrices do not fit in memory, each is refused."""
    method, anchors = batch[0].method, batch[0].anchors
    try:
        yield from run_checks(data, method, batch) if method in CHECKS else run_trials(data, method, anchors, batch)
    except MemoryLimitError:
        yield from ((trial, {REFUSED: 1.0}) for trial in batch)
