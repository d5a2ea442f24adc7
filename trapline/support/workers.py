"""Processes of this machine that work for a command, and end with it, whatever ends it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker
from typing import Any, Final, ParamSpec, TypeVar

from emu.isa import Isa

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


# The signals at which a command stops its workers.
_ENDS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# The resource tracker, which removes what a killed command has left, need not report it.
_SILENT: Final = "ignore:resource_tracker:UserWarning"


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let the signals that end the command wait until the end of a `with` statement."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _follow() -> None:
    """End this worker with the process that it works for, at whatever it is then."""
    command = multiprocessing.parent_process()
    assert command is not None
    # A terminal sends these to all processes; the command answers, and ends its workers.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # blocked while the server was started

    def watch() -> None:
        command.join()
        os._exit(1)

    threading.Thread(target=watch, name="end with the command", daemon=True).start()


class Workers(ProcessPoolExecutor):
    """An executor of `jobs` processes, which have imported the module `preload`.

    A terminal sends ^C to all processes: only the one that has started the others handles it, and
    calls `abandon`.  If it is killed, the workers end by themselves (`_follow`), and with the last
    of them the processes of `multiprocessing` that have started them.
    """

    def __init__(self, jobs: int, preload: str) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([preload])  # a worker that replaces another one starts at once
        # The start of the tracker lets the signals through that were blocked before it.
        sys.warnoptions.append(_SILENT)  # multiprocessing gives the tracker the options of this interpreter
        resource_tracker.ensure_running()
        sys.warnoptions.remove(_SILENT)
        with _uninterrupted():
            forkserver.ensure_running()
        super().__init__(jobs, mp_context=context, initializer=_follow)

    def submit(
        self, fn: Callable[_Arguments, _Result], /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> Future[_Result]:
        """Give a call to the workers, one of which it may start.

        A worker whose start is cut off by ^C is not known to its executor, so nothing would end it.
        """
        with _uninterrupted():
            return super().submit(fn, *args, **kwargs)


def abandon(executor: Executor, futures: Iterable[Future[Any]]) -> None:
    """Stop an executor, and end its processes: unfinished calls are abandoned.

    A process that is ended may hold the lock for which another one waits: all end, or none would.
    """
    with _uninterrupted():
        processes = dict(getattr(executor, "_processes", None) or {})
        for process in processes.values():
            process.terminate()
        if not processes:
            for future in futures:  # an executor whose processes are gone gives up its calls, but no cancelled one
                future.cancel()
        # The executor's thread closes its pipe when the processes are gone.  Python's end, which writes to
        # that pipe, must not come meanwhile.
        executor.shutdown(wait=bool(processes))


Result = TypeVar("Result")


def each_isa(work: Callable[[str], Result], isas: Sequence[Isa], told: Callable[[], object]) -> list[Result]:
    """Return the results of `work` for the name of each ISA, in order, from one process each.

    `told` is called whenever one is done.  `work` is a function of a module.
    """
    jobs = min(len(isas), os.cpu_count() or 1)
    if jobs <= 1:
        results = []
        for isa in isas:
            results.append(work(isa.name))
            told()
        return results
    futures: list[Future[Result]] = []
    workers = Workers(jobs, work.__module__)
    try:
        for isa in isas:
            futures.append(workers.submit(work, isa.name))
            futures[-1].add_done_callback(lambda _future: told())
        return [future.result() for future in futures]
    finally:
        abandon(workers, futures)
