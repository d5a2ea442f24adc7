"""The breakpoint is taken out of memory, and the CPU continues executing it.

On most CPUs that are not x86, what was fetched as an instruction stays in the instruction cache
when the same bytes are written as data.  Who writes code cleans the one cache and drops the line
from the other, or the old bytes are still executed.  A debugger's breakpoint was put back to the
original instruction and the caches left alone: on the next run the CPU took the same breakpoint
again, which no debugger claimed any more.  (Here the cache is Unicorn's translated code.)
"""

from emu.guest.linux.mm.address_space import Space
from emu.guest.linux.mm.user_code import ProcessCode
from emu.probe.patcher import CodeMemory, Patcher
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.checks import InRun
from trapline.lab.museum.exhibit import Exhibit


class Forgetful:
    """The memory of a process, written as data."""

    def __init__(self, space: Space) -> None:
        self._space = space

    def read(self, address: int, size: int) -> bytes:
        """Return bytes."""
        return self._space.peek(address, size)

    def write_code(self, address: int, data: bytes) -> None:
        """Write, and leave the instruction cache alone."""
        self._space.poke(address, data, forget=False)


def patcher(memory: CodeMemory) -> Patcher:
    """Return a patcher of a process's code."""
    assert isinstance(memory, ProcessCode)
    return Patcher(Forgetful(memory.space))


EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="illumos on arm64 (a port's branch), kmdb's deferred breakpoints, 2025",
    references=("https://github.com/richlowe/illumos-gate/pull/137",),
    isa_name="aarch64",
    provider="pid",
    code=bytes.fromhex(
        "00040091"  # add x0, x0, #1
        "c0035fd6"  # ret
    ),
    old=Rules(patcher=patcher),
    was="the original bytes are written back",
    now="the original bytes are written back, and the translation of the patch is dropped",
    check=InRun(arguments=(41,)),
)
