"""i386 registers (data only)."""

from __future__ import annotations

from unicorn import x86_const as uc

from emu.isa.base import Register, RegisterFile
from emu.isa.x86.registers import segment, slot

# Order of CPUX86State.regs in QEMU: the encoding numbers.  The words are 64-bit; their upper halves stay 0.
GENERAL = ("eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi")
_NUMBERS = (
    uc.UC_X86_REG_EAX, uc.UC_X86_REG_ECX, uc.UC_X86_REG_EDX, uc.UC_X86_REG_EBX, uc.UC_X86_REG_ESP, uc.UC_X86_REG_EBP,
    uc.UC_X86_REG_ESI, uc.UC_X86_REG_EDI,
)  # fmt: skip

_OTHER = (
    ("eflags", uc.UC_X86_REG_EFLAGS), ("cs", uc.UC_X86_REG_CS), ("ss", uc.UC_X86_REG_SS), ("ds", uc.UC_X86_REG_DS),
    ("es", uc.UC_X86_REG_ES), ("fs", uc.UC_X86_REG_FS), ("gs", uc.UC_X86_REG_GS),
)  # fmt: skip

REGISTERS = RegisterFile(
    registers=(
        *(Register(GENERAL[index], number, slot("REGS", index)) for index, number in enumerate(_NUMBERS)),
        Register("eip", uc.UC_X86_REG_EIP, slot("RIP")),
        *(Register(name, number) for name, number in _OTHER),
        Register("hflags", uc.UC_X86_REG_INVALID, slot("HFLAGS")),
        # CPUX86State.segs, 24 bytes each (ES CS SS DS FS GS): the selector, the base 8 bytes after it, then the limit
        # and the flags.
        Register("es_selector", uc.UC_X86_REG_ES, segment(0)),
        Register("cs_selector", uc.UC_X86_REG_CS, segment(1)),
        Register("ss_selector", uc.UC_X86_REG_SS, segment(2)),
        Register("ss_limit_and_flags", uc.UC_X86_REG_INVALID, segment(2) + 2),
        Register("ds_selector", uc.UC_X86_REG_DS, segment(3)),
        Register("fs_selector", uc.UC_X86_REG_FS, segment(4)),
        Register("fs_base", uc.UC_X86_REG_FS_BASE, segment(4) + 1),
        Register("gs_selector", uc.UC_X86_REG_GS, segment(5)),
        Register("gs_base", uc.UC_X86_REG_GS_BASE, segment(5) + 1),
        Register("fpcw", uc.UC_X86_REG_FPCW),
        Register("fpsw", uc.UC_X86_REG_FPSW),
        Register("fptag", uc.UC_X86_REG_FPTAG),
        Register("mxcsr", uc.UC_X86_REG_MXCSR),
        Register("cr2", uc.UC_X86_REG_CR2, slot("CR2")),
        Register("cr3", uc.UC_X86_REG_CR3, slot("CR3")),
        Register("cr4", uc.UC_X86_REG_CR4, slot("CR4")),
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
