"""Standard streams that the caller has closed, and output that cannot be written."""

from __future__ import annotations

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
