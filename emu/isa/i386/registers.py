"""i386 registers (data only)."""

from __future__ import annotations

from emu.isa.base import Register, RegisterFile
from emu.isa.x86.registers import segment, slot

# Order of CPUX86State.regs in QEMU: the encoding numbers.  The words are 64-bit; their upper halves stay 0.
GENERAL = ("eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi")
_OTHER = ("eflags", "cs", "ss", "ds", "es", "fs", "gs")

REGISTERS = RegisterFile(
    registers=(
        *(Register(name, slot("REGS", index)) for index, name in enumerate(GENERAL)),
        Register("eip", slot("RIP")),
        *(Register(name) for name in _OTHER),
        Register("hflags", slot("HFLAGS")),
        # CPUX86State.segs, 24 bytes each (ES CS SS DS FS GS): the selector, the base 8 bytes after it, then the limit
        # and the flags.
        Register("es_selector", segment(0)),
        Register("cs_selector", segment(1)),
        Register("ss_selector", segment(2)),
        Register("ss_limit_and_flags", segment(2) + 2),
        Register("ds_selector", segment(3)),
        Register("fs_selector", segment(4)),
        Register("fs_base", segment(4) + 1),
        Register("gs_selector", segment(5)),
        Register("gs_base", segment(5) + 1),
        Register("fpcw"),
        Register("fpsw"),
        Register("fptag"),
        Register("mxcsr"),
        Register("cr2", slot("CR2")),
        Register("cr3", slot("CR3")),
        Register("cr4", slot("CR4")),
    ),
    pc="eip",
    sp="esp",
    fp="ebp",
    link=None,
    zero=None,
    root="cr3",
    kernel_root="cr3",
    bases=("fs_base", "gs_base"),
    counter="ecx",
    # System V ABI, Intel386 supplement, table 2.14
    dwarf=(*GENERAL, "eip"),
    # FreeBSD sys/cddl/dev/dtrace/x86/regset.h; ESP and UESP are one register here
    dtrace=("gs", "fs", "es", "ds", "edi", "esi", "ebp", "esp", "ebx", "edx", "ecx", "eax", "trapno", "err", "eip",
            "cs", "eflags", "esp", "ss"),
)  # fmt: skip
