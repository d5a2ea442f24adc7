"""The length of a file: its limit, and the mappings that a shorter file cuts.

Source: Linux fs/attr.c inode_newsize_ok(), mm/truncate.c, mm/memory.c unmap_mapping_range().
"""

from __future__ import annotations

from emu.engine.memory.pages import round_up
from emu.guest.linux.calls.fs.namei import touch
from emu.guest.linux.calls.table import Caller
from emu.guest.linux.errno import EFBIG, LinuxError
from emu.guest.linux.fs.regular import RegularFile
from emu.guest.linux.process.rlimit import FSIZE
from emu.isa.linux_signals import SI_USER, Signal, SignalInfo


def too_large(c: Caller) -> LinuxError:
    """Return the error of a file that would be larger than its limit.

    The thread gets SIGXFSZ with it.
    """
    c.kernel.sending.send_thread(c.thread, SignalInfo(Signal.SIGXFSZ, SI_USER, pid=c.process.pid))
    return LinuxError(EFBIG)


def need_limit(c: Caller, file: RegularFile, size: int) -> None:
    """Check that a file may become this long.  Raises `LinuxError` EFBIG, with SIGXFSZ."""
    if size > max(c.process.limits[FSIZE].soft, file.size):
        raise too_large(c)


def set_length(c: Caller, file: RegularFile, size: int) -> None:
    """Make a file this long, and note the change.

    Processes lose the pages of its mappings behind the end, also their own copies: an access raises
    SIGBUS.  Raises `LinuxError`: EFBIG, EPERM.
    """
    need_limit(c, file, size)
    shorter = size < file.size
    file.truncate(size)
    touch(c, file)
    if not shorter:
        return
    end = round_up(size)
    for space, area in c.kernel.tasks.mappings(file):
        space.drop(max(area.start, area.start + end - area.offset), area.end)
