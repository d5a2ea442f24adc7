"""x86-64 registers (data only)."""

from __future__ import annotations

from emu.isa.base import Register, RegisterFile
from emu.isa.x86.registers import segment, slot

# Order of CPUX86State.regs in QEMU: the encoding numbers.
GENERAL = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{number}" for number in range(8, 16)))
_OTHER = ("rflags", "cs", "ss", "ds", "es", "fs", "gs", "fs_base", "gs_base")

# regs[]: 0-18 are the i386 names, 19 + k the amd64 ones (FreeBSD sys/cddl/dev/dtrace/x86/regset.h).
_I386 = ("gs", "fs", "es", "ds", "rdi", "rsi", "rbp", "rsp", "rbx", "rdx", "rcx", "rax", "trapno", "err", "rip", "cs",
"rflags",
         "rsp", "ss")  # fmt: skip
_AMD64 = ("r15", "r14", "r13", "r12", "r11", "r10", "r9", "r8", "rdi", "rsi", "rbp", "rbx", "rdx", "rcx", "rax",
"trapno",
          "fs", "gs", "err", "es", "ds", "rip", "cs", "rflags", "rsp", "ss")  # fmt: skip

REGISTERS = RegisterFile(
    registers=(
        *(Register(name, slot("REGS", index)) for index, name in enumerate(GENERAL)),
        Register("rip", slot("RIP")),
        *(Register(name) for name in _OTHER),
        # The state of the CPU behind them: the mode (`emu.isa.x86.linux`), the selectors of CPUX86State.segs.
        Register("hflags", slot("HFLAGS")),
        Register("cs_selector", segment(1)),
        Register("es_selector", segment(0)),
        Register("ss_selector", segment(2)),
        Register("ds_selector", segment(3)),
        Register("fs_selector", segment(4)),
        Register("gs_selector", segment(5)),
        Register("fpcw"),
        Register("fpsw"),
        Register("fptag"),
        Register("mxcsr"),
        Register("cr2", slot("CR2")),
        Register("cr3", slot("CR3")),
        Register("cr4", slot("CR4")),
    ),
    pc="rip",
    sp="rsp",
    fp="rbp",
    link=None,
    zero=None,
    root="cr3",
    kernel_root="cr3",
    bases=("fs_base", "gs_base"),
    counter="rcx",
    # System V ABI, AMD64 supplement, figure 3.36
    dwarf=("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", *(f"r{number}" for number in range(8, 16)), "rip"),
    dtrace=_I386 + _AMD64,
)
