"""The memory that a piece of code takes, however much its process has had before.

The most that a process has had (`ru_maxrss`) never falls: a worker that has run other tests could
take that much again unseen.
"""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class Memory:
    """Bytes that Python has allocated at once, at most, above those at the start."""

    peak: int = 0


@contextmanager
def measured() -> Iterator[Memory]:
    """Measure the block; the result is there at its end."""
    memory = Memory()
    tracemalloc.start()
    try:
        yield memory
        memory.peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
