"""The text of a Linux kernel or of a module, as the functions and the code of a file.

When a kernel boots, or loads a module, it modifies the text.  Two of these changes are made here
too, because they decide where the probes of functions are:

| table | file | afterwards, without mitigations |
| --- | --- | --- |
| `RETURNS` (x86-64) | `jmp __x86_return_thunk` | `ret`, `int3` |
| `PADS` | `call __fentry__`, or four `c.nop` | ftrace's pad |

Alternatives, jump labels and static calls stay as they are in the file.

Source: Linux 6.12 arch/x86/kernel/alternative.c (apply_returns), arch/*/kernel/ftrace.c
(ftrace_init_nop), arch/*/kernel/module.c (module_finalize).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Final

from emu.elf.image import Image
from emu.guest.linux_kernel.files.tables import Placed, Table, addresses
from emu.guest.linux_kernel.platforms.boards import BOARDS

# At the places of the return sites: the first bytes in the file, and the bytes that replace them.
_RETURNS: Final = (bytes.fromhex("e9"), bytes.fromhex("c3cccccccc"))


class LinuxText(Image):
    """The text of one kernel or module, with two changes of its boot or load made."""

    noun: ClassVar[str]
    """What the file is: a kernel or a module."""

    @abstractmethod
    def table(self, table: Table) -> Placed:
        """Return a table; an empty one if there is none."""

    def as_loaded(self, start: int, content: bytes) -> bytes:
        """Return text at an address as the kernel makes it."""
        data = bytearray(content)
        for table, (before, after) in ((Table.RETURNS, _RETURNS), (Table.PADS, BOARDS[self.isa.name].pad)):
            for address in addresses(self.table, table):
                at = address - start
                if 0 <= at < len(data) and data.startswith(before, at):
                    data[at : at + len(after)] = after
        return bytes(data)
