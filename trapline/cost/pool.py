"""One process for each ISA, if this machine has more than one CPU."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

from emu.isa import Isa
from trapline.support.workers import Workers, abandon

Result = TypeVar("Result")


def each(work: Callable[[str], Result], isas: Sequence[Isa], told: Callable[[], object]) -> list[Result]:
    """Return the results of `work` for the name of each ISA, in order.

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
