"""Long work in units, on many workers, that goes on where it was stopped.

The result of a unit is written to a file as soon as it is there.  So ^C, a time limit or a killed
process loses the units under way, and no other; and no unit is done twice.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Final

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from trapline.commands.check import dask_workers
from trapline.lab.check.runner.pool import MakeExecutor, local
from trapline.support.workers import abandon

RESULTS: Final = Path(__file__).parent / "results"
STOPPED: Final = "stopped; finished work is saved, and the same command continues there"
# The number of queued units for each worker.
_AHEAD: Final = 2
# Seconds after which a stop at the end of the time is asked for again, if something has swallowed it.
_AGAIN: Final = 5.0


class TimeIsUpError(KeyboardInterrupt):
    """The time for a part of the work is over: it stops as after ^C."""


class Kept:
    """Results of finished units, in a file with a line of JSON for each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.results: dict[str, Any] = {}
        """Key of a unit -> its result."""
        for line in path.read_text("utf-8").splitlines() if path.exists() else ():
            try:
                key, result = json.loads(line)
            except ValueError:  # it was being written when the machine stopped
                continue
            self.results[key] = result

    def add(self, key: str, result: Any) -> None:
        """Keep the result of a unit."""
        self.results[key] = result
        self._path.parent.mkdir(exist_ok=True)
        # A line that was cut off does not take the next one with it.
        begun = self._path.exists() and self._path.read_bytes()[-1:] not in {b"", b"\n"}
        with self._path.open("a", encoding="utf-8") as file:
            file.write("\n" * begun + json.dumps([key, result]) + "\n")


def kept(name: str, *parts: ModuleType | str) -> Kept:
    """Return the results of a check by its name that are valid for the source of some packages.

    A part is a package, or a text on which the results depend.
    """
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            digest.update(part.encode())
            continue
        folder = Path(str(part.__file__)).parent
        for path in sorted(one for suffix in ("*.py", "*.ll") for one in folder.rglob(suffix)):
            digest.update(path.read_bytes())
    return Kept(RESULTS / ".ongoing" / f"{name}-{digest.hexdigest()[:16]}.jsonl")


def complete(
    title: str,
    units: Mapping[str, Sequence[Any]],
    work: Callable[..., Any],
    done: Kept,
    make: MakeExecutor,
    jobs: int = 1,
) -> list[Any]:
    """Do the remaining units, and return the results of all in their order.

    `units`: key -> arguments of `work`, which any process can be given.
    """  # fmt: skip
    left = [key for key in units if key not in done.results]
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    if left:
        executor = make()
        under_way: dict[Future[Any], str] = {}
        waiting = iter(left)
        try:
            with Progress(*columns) as progress:
                task = progress.add_task(title, total=len(units), completed=len(units) - len(left))
                while True:
                    while len(under_way) < _AHEAD * jobs and (key := next(waiting, None)) is not None:
                        under_way[executor.submit(work, *units[key])] = key
                    if not under_way:
                        break
                    for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                        done.add(under_way[future], future.result())
                        del under_way[future]
                        progress.advance(task)
        except BrokenExecutor:
            sys.exit(f"{title}: a worker process died at one of: {', '.join(under_way.values())}")
        finally:
            abandon(executor, under_way)
    return [done.results[key] for key in units]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options about workers."""
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="worker processes; default: %(default)s")
    parser.add_argument("--dask", metavar="ADDRESS", help="use the workers of a Dask cluster, such as tcp://host:8786")


@contextmanager
def workers(arguments: argparse.Namespace) -> Iterator[MakeExecutor]:
    """Yield the maker of an executor for the options of `add_options`; exit without a cluster."""
    if arguments.dask is None:
        yield local(arguments.jobs)
        return
    with ExitStack() as stack:
        try:
            make = stack.enter_context(dask_workers(arguments.dask))
        except click.ClickException as error:
            sys.exit(error.format_message())
        yield make


@contextmanager
def bounded(seconds: float | None) -> Iterator[None]:
    """Raise `TimeIsUpError` inside a `with` statement when the time is over; None: never."""

    def over(_number: int, _frame: FrameType | None) -> None:
        raise TimeIsUpError

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds or 0.0, _AGAIN if seconds else 0.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def command(main: Callable[[], int]) -> None:
    """Run a long check as a command: ^C and SIGTERM stop it in one line."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(STOPPED)
