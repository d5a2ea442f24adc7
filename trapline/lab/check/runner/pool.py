"""Many units on many workers, some of which may die.

A worker that dies takes its executor's other futures with it, and no information shows which unit
it was. So all unfinished units are repeated one at a time; a unit that crashes its worker is halved
until it is one site.  A worker that cannot read the file that is checked ends the check: no site is
at fault.
"""

from __future__ import annotations

import errno
import resource
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from functools import partial
from typing import Final

from emu.elf.file import ElfError
from trapline.lab.check.runner.unit import Done, Spec, Unit, able, crashed, work
from trapline.support.workers import Workers, abandon

MakeExecutor = Callable[[], Executor]
# The number of queued units for each worker.
_AHEAD: Final = 2
# Errors of a worker that no smaller unit avoids: the file has gone, or changed, or is not on the worker's machine.
_ENDING: Final = (FileNotFoundError, PermissionError, ElfError)


def local(jobs: int) -> MakeExecutor:
    """Return a function that makes an executor of `jobs` processes of this machine."""
    return partial(Workers, jobs, work.__module__)


class WorkersError(Exception):
    """No worker can do anything on this machine; the message says why, on one line."""


class Crew:
    """Does units on an executor of `make`, and on a new one whenever one has broken."""

    def __init__(self, make: MakeExecutor, jobs: int) -> None:
        self._make = make
        self._ahead = _AHEAD * jobs
        self._executor = make()
        self._under_way: dict[Future[Done], Unit] = {}

    def close(self) -> None:
        """Stop: unfinished units are abandoned."""
        abandon(self._executor, self._under_way)

    def run(self, spec: Spec, units: Iterable[Unit]) -> Iterator[Done]:
        """Do all units, and yield the results as they arrive.

        Raises `RuntimeError` if a new executor accepts no work, `FileNotFoundError`,
        `PermissionError` and `emu.elf.image.ElfError` if a worker cannot read the file.
        """
        waiting = deque(units)
        under_way = self._under_way
        while waiting or under_way:
            suspects: list[Unit] = []
            try:
                while waiting and len(under_way) < self._ahead:
                    under_way[self._begin(spec, waiting[0])] = waiting[0]
                    waiting.popleft()
            except RuntimeError:  # broken, or shut down by other code
                if not under_way:  # so is a new one
                    raise
                suspects = list(under_way.values())
            for future in wait(under_way, return_when=FIRST_COMPLETED).done if not suspects else ():
                unit = under_way.pop(future)
                if future.exception() is None:
                    yield future.result()
                else:
                    suspects.append(unit)
            if suspects:
                suspects += [unit for unit in under_way.values() if unit not in suspects]
                under_way.clear()
                self._renew()
                yield from self._one_by_one(spec, suspects)

    def _begin(self, spec: Spec, unit: Unit) -> Future[Done]:
        """Give a unit to the executor; to a new one if it accepts none while nothing is under way."""
        try:
            return self._executor.submit(work, spec, unit)
        except RuntimeError:
            if self._under_way:
                raise
            self._renew()
            return self._executor.submit(work, spec, unit)

    def _one_by_one(self, spec: Spec, suspects: list[Unit]) -> Iterator[Done]:
        left = deque(suspects)
        while left:
            unit = left.popleft()
            future = self._executor.submit(work, spec, unit)
            error = future.exception()
            if error is None:
                yield future.result()
                continue
            if isinstance(error, _ENDING):
                raise error
            self._renew()
            halves = unit.halves()
            if halves is None:
                self._require_able(error)
                yield crashed(spec, unit, error)
            else:
                left.extendleft(reversed(halves))

    def _require_able(self, error: BaseException) -> None:
        """Raise `WorkersError` if it is this machine that has not let a unit be done, not the unit."""
        short = isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        if not (short or self._executor.submit(able).exception()):
            return
        self._renew()
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        least = "" if limit == resource.RLIM_INFINITY else f"; the limit is {limit >> 20} MiB (ulimit -v)"
        raise WorkersError(f"the workers have too little memory or address space for an emulated CPU{least}")

    def _renew(self) -> None:
        self.close()
        self._executor = self._make()
