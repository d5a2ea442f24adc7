"""The start and the end of the command's process.

Nothing is imported from a package of the same name that is not ours.  At the end, the interpreter
is not taken apart: the process ends when all else is done.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys


def main() -> None:
    """Run `trapline`, if its packages are its own."""
    # The objects of modules are permanent: the command's loader (trapline/cli.py) sets what is searched after them.
    gc.disable()
    # ^C ends the process at once while modules are imported: nothing is to be tidied up, and a traceback helps nobody.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from trapline.support.neighbours import intruder  # noqa: PLC0415
    from trapline.support.process import replace_closed  # noqa: PLC0415

    replace_closed()
    problem = intruder()
    if problem is not None:
        sys.stderr.write(f"trapline: {problem}\n")
        sys.exit(1)
    ending = _Ending()
    from trapline.cli import main as command  # noqa: PLC0415  it imports those packages

    try:
        command()
    except SystemExit as end:
        ending.note(end.code)
        raise


class _Ending:
    """Ends the process without destroying each object first, which takes long.

    It is the first to register, so it is called last: threads are joined then, and the functions
    that others have registered for the exit have been called.  Nothing may depend on the
    destruction of an object: code that writes a file closes it, or writes its buffer.
    """

    def __init__(self) -> None:
        self._status: int | None = None
        atexit.register(self._end)

    def note(self, code: object) -> None:
        """Note the exit status; another one, a message, is left to the interpreter."""
        if code is None or isinstance(code, int):
            self._status = (code or 0) & 0xFF

    def _end(self) -> None:
        if self._status is None:
            return
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        except (OSError, ValueError):
            return  # the interpreter reports what is left
        os._exit(self._status)
