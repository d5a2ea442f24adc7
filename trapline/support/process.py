"""The state of the command's own process: standard streams, signals, garbage collector."""

from __future__ import annotations

import _thread
import gc
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import Final

# In the order of their descriptors: name, mode, and how /dev/null replaces a closed one.
_STREAMS: Final = (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY))

# The signals that end a command, and how its last line says so.
_ENDS: Final = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGHUP: "hung up"}
# Seconds until a signal is sent again, and until the process ends at one.
_AGAIN: Final = 0.01
_PATIENCE: Final = 1.0
# The times at which C code has dropped a signal's exception.
_dropped: list[float] = []


class Ended(KeyboardInterrupt):
    """A signal tells the command to end, as ^C does."""

    number = signal.SIGTERM


def raise_at_signals() -> None:
    """Let the signals that end a command raise KeyboardInterrupt, so that it tidies up.

    A signal that the caller has set to be ignored, as `nohup` and shells do, stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in _ENDS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else _end)
    sys.unraisablehook = _again


def _end(number: int, _frame: object) -> None:
    end = Ended()
    end.number = signal.Signals(number)
    raise end


def _again(unraisable: sys.UnraisableHookArgs) -> None:
    """Send a signal again that has come in a callback of C code, which drops the exception.

    The emulator makes callbacks: the signal is sent until it comes at another time, or the limit is
    over, and then the process ends.
    """
    end = unraisable.exc_value
    if not isinstance(end, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    why, status = ending(end)
    now = time.monotonic()
    _dropped.append(now)
    if now - _dropped[0] > _PATIENCE:
        os.write(2, f"trapline: {why}\n".encode())
        os._exit(status)
    _thread.start_new_thread(_send, (status - 128,))  # threading's start waits, and that a signal can interrupt


def _send(number: int) -> None:
    time.sleep(_AGAIN)
    os.kill(os.getpid(), number)


def ending(end: KeyboardInterrupt) -> tuple[str, int]:
    """Return how a signal has ended the command, in words, and its exit status."""
    number = end.number if isinstance(end, Ended) else signal.SIGINT
    return _ENDS[number], 128 + number


def replace_closed() -> None:
    """Give each standard stream that the caller has closed (`>&-`) a descriptor of its own number.

    Otherwise the next file that is opened would get the number, and Python has no stream object.
    Input is at its end; writing output fails with EBADF; messages are lost, for nobody reads them.
    """
    for number, (name, mode, access) in enumerate(_STREAMS):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is the result: those below are open.
            os.open(os.devnull, access)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115  until the end


def abandon_output() -> None:
    """Discard the rest of the output: the interpreter writes its buffer when it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def relieve_collector() -> None:
    """Exempt existing objects from garbage collection, and collect new ones seldom.

    For a process that makes tens of thousands of objects which last.
    """
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
