"""Files that a user names to be read."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final

# The folders whose FIFOs are open already: a shell's <(...), and standard input.
_OPEN: Final = ("/dev/", "/proc/")


def readable(path: str | Path) -> Path:
    """Return the path of a file that can be opened without waiting.

    Raises OSError for a FIFO with a name, to which perhaps nobody ever writes.
    """
    path = Path(path)
    if path.is_fifo() and not str(path.absolute()).startswith(_OPEN):
        raise OSError(errno.ESPIPE, "a named pipe; give what comes out of it as standard input, /dev/stdin", str(path))
    return path
