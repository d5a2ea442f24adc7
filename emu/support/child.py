"""Programs of the host that this process runs, and that end with it, whatever ends it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

# Linux include/uapi/linux/prctl.h.
_SET_PARENT_DEATH_SIGNAL: Final = 1
_libc = ctypes.CDLL(None)


def end_with(parent: int) -> None:
    """Let the kernel kill this process, a fork, as soon as its parent has ended.

    Source: Linux prctl(2), PR_SET_PDEATHSIG.
    """
    _libc.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended before
        os._exit(1)


@contextmanager
def started(command: Sequence[str], output: int, **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a program; it and what it starts, a group, end with the `with` statement.

    If this process is killed, the kernel kills the program.  `options` are those of `Popen`.
    """
    with subprocess.Popen(  # noqa: S603  callers name the program
        command,
        stdout=output,
        stderr=output,
        process_group=0,
        preexec_fn=partial(end_with, os.getpid()),  # noqa: PLW1509  it only calls the kernel
        **{"stdin": subprocess.DEVNULL, **options},
    ) as process:
        try:
            yield process
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


def run(
    command: Sequence[str], *, timeout: float, given: bytes | None = None, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """Return what a program does with the input `given`, and what it says.

    Raises what `subprocess.run` raises; whatever interrupts this ends the program (`started`).
    """
    stdin = subprocess.DEVNULL if given is None else subprocess.PIPE
    with started(command, subprocess.PIPE, stdin=stdin, **options) as process:
        output, messages = process.communicate(given, timeout)
    return subprocess.CompletedProcess(command, process.returncode, output, messages)
