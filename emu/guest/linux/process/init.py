"""Process 1: the parent of the first process, as far as programs can ask about it.

It has no program and no memory, it is never on the CPU, and signals do not reach it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emu.guest.linux.fs.fdtable import Descriptors
from emu.guest.linux.process.process import INIT, Life, Process, Signals, Surroundings, Thread

if TYPE_CHECKING:
    from emu.guest.linux.kernel import Kernel


def make_init(kernel: Kernel) -> Process:
    """Return the process, which is root's."""
    space, files = kernel.on_cpu.empty_space(), Descriptors(kernel.open_files)
    around = Surroundings(kernel.root, kernel.root)
    process = Process(INIT, None, space, files, around, Signals(), group=INIT, session=INIT, name="init")
    process.threads.append(Thread(INIT, process, life=Life.BLOCKED))
    return process
