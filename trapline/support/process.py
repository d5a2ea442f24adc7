"""The state of the command's own process: its standard streams and its garbage collector."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from typing import Final

# In the order of their descriptors: name, mode, and how /dev/null replaces a closed one.
_STREAMS: Final = (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY))


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
