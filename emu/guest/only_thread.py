"""Machine code that reads the only thread of a guest (`emu.native.guest`)."""

from __future__ import annotations

from emu.guest.base import Thread
from emu.native.guest import NAME_SIZE, GuestCode, Writer


def thread_code(thread: Thread) -> GuestCode:
    """Return functions about the only thread that a guest has."""
    numbers = ("address", "tid", "pid", "ppid", "uid", "gid", "errno")
    name = thread.execname.encode("utf-8", "surrogateescape")[: NAME_SIZE - 1].ljust(NAME_SIZE, b"\0")
    functions = {number: _constant(getattr(thread, number)) for number in numbers}
    functions["execname"] = lambda f, _slow: f.ret(f.module.data("thread_name", name))
    return GuestCode(functions)


def _constant(number: int) -> Writer:
    return lambda f, _slow: f.ret(number)
