"""The processes that work for a command (`trapline.support.workers`)."""

from __future__ import annotations

import threading
import time

from trapline.support.workers import Workers, abandon


def test_abandoned_workers_leave_neither_a_process_nor_a_thread():
    """Python's end writes to the pipe of an executor whose thread still runs, which may just close it."""
    before = set(threading.enumerate())
    workers = Workers(2, __name__)
    futures = [workers.submit(time.sleep, 100) for _ in range(4)]
    processes = list(workers._processes.values())
    abandon(workers, futures)
    assert set(threading.enumerate()) == before
    assert processes
    assert not any(process.is_alive() for process in processes)
