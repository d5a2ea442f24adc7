"""The common part of the glues for Linux: the saved registers, and functions of the kernel.

Source: Linux arch/*/include/asm/ptrace.h, include/linux/uprobes.h, include/linux/uaccess.h.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from emu.support.words import BadAddressError
from trapline.lab.objects.build import Generated, Recipe
from trapline.lab.objects.glue import Glue, extern
from trapline.lab.objects.structures import View

_EFAULT: Final = 14
# The tables of x86's decoder, which Linux' build makes of its list of opcodes.
_INSN_TABLES: Final = Generated(
    "inat-tables.c", "arch/x86/tools/gen-insn-attr-x86.awk", "arch/x86/lib/x86-opcode-map.txt"
)
# A register -> its member in pt_regs, where it is neither its own name nor regs[NUMBER].
_MEMBERS: Final[Mapping[str, tuple[Any, ...]]] = {
    "pc": ("pc", "epc"),
    "fp": (("regs", 29),),
    "lr": (("regs", 30),),
    "nzcv": ("pstate",),
    "rip": ("ip",),
    "eip": ("ip",),
    "rflags": ("flags",),
    "eflags": ("flags",),
}


def recipe_of(decides: str, x86: str) -> Recipe:
    """Return the recipe of a mechanism: its file in arch/*, and that of x86, with their decoders."""
    return Recipe(
        "linux",
        (decides, "kernel/probes/decode-insn.c", "kernel/probes/simulate-insn.c", "lib/insn.c"),
        required=3,
        options=("-D__KERNEL__",),
        includes=("arch/{folder}/include",),
        variants={"x86": (x86, "x86/lib/insn.c", "x86/lib/inat.c")},
        generated=(_INSN_TABLES,),
    )


def pt_regs_member(frame: View, register: str) -> Any:
    """Return the member of pt_regs that holds a register, None if there is none."""
    numbered = ("regs", int(register[1:])) if register[1:].isdigit() else register
    # x86's members have the names of the 16-bit registers.
    short = register[1:] if register[0] in "re" else register
    for key in (*_MEMBERS.get(register, ()), register, numbered, short):
        if frame.has(key[0] if isinstance(key, tuple) else key):
            return key
    return None


class LinuxGlue(Glue):
    """The base class of glues for Linux."""

    data: ClassVar[Mapping[str, int]] = {"trapline_task": 512}
    frame = "pt_regs"

    def key(self, frame: View, register: str) -> Any:
        """Return the member of pt_regs that holds a register, None if there is none."""
        return pt_regs_member(frame, register)

    @extern("int printk(const char *format, ...)")
    def printk(self, _text: str) -> int:
        """Print nothing."""
        return 0

    @extern("unsigned long copy_to_user(void *to, const void *from, unsigned long size)")
    def copy_to_user(self, to: int, source: int, size: int) -> int:
        """Copy to the program's memory; return the number of bytes that were not copied."""
        try:
            self.code.store(to, self.code.load(source, size))
        except BadAddressError:
            return size
        return 0

    @extern("unsigned long copy_from_user(void *to, const void *from, unsigned long size)")
    def copy_from_user(self, to: int, source: int, size: int) -> int:
        """Copy from the program's memory; return the number of bytes that were not copied."""
        return self.copy_to_user(to, source, size)

    @extern("long copy_from_kernel_nofault(void *to, const void *from, size_t size)")
    def copy_nofault(self, to: int, source: int, size: int) -> int:
        """Copy from any memory, which need not be there; return 0, or an error number."""
        try:
            self.code.store(to, self.code.guest.engine.read(source, size))
        except BadAddressError:
            return -_EFAULT
        return 0

    @extern("void *kmap_atomic(void *page)")
    def kmap_atomic(self, page: int) -> int:
        """Return the page's own address."""
        return page

    @extern("void kunmap_atomic(void *address)")
    def kunmap_atomic(self, _address: int) -> None:
        """Do nothing."""

    @extern("void sync_icache_aliases(unsigned long start, unsigned long end)")
    def sync_icache(self, _start: int, _end: int) -> None:
        """Do nothing."""

    @extern("void flush_icache_range(unsigned long start, unsigned long end)")
    def flush_icache(self, _start: int, _end: int) -> None:
        """Do nothing."""
