"""x86-64 registers (data only)."""

from __future__ import annotations

from unicorn import x86_const as uc

from emu.isa.base import Register, RegisterFile
from emu.isa.x86.registers import segment, slot

# Order of CPUX86State.regs in QEMU: the encoding numbers.
_GENERAL = (
    ("rax", uc.UC_X86_REG_RAX), ("rcx", uc.UC_X86_REG_RCX), ("rdx", uc.UC_X86_REG_RDX), ("rbx", uc.UC_X86_REG_RBX),
    ("rsp", uc.UC_X86_REG_RSP), ("rbp", uc.UC_X86_REG_RBP), ("rsi", uc.UC_X86_REG_RSI), ("rdi", uc.UC_X86_REG_RDI),
    ("r8", uc.UC_X86_REG_R8), ("r9", uc.UC_X86_REG_R9), ("r10", uc.UC_X86_REG_R10), ("r11", uc.UC_X86_REG_R11),
    ("r12", uc.UC_X86_REG_R12), ("r13", uc.UC_X86_REG_R13), ("r14", uc.UC_X86_REG_R14), ("r15", uc.UC_X86_REG_R15),
)  # fmt: skip

GENERAL = tuple(name for name, _ in _GENERAL)
_OTHER = (
    ("rflags", uc.UC_X86_REG_RFLAGS), ("cs", uc.UC_X86_REG_CS), ("ss", uc.UC_X86_REG_SS), ("ds", uc.UC_X86_REG_DS),
    ("es", uc.UC_X86_REG_ES), ("fs", uc.UC_X86_REG_FS), ("gs", uc.UC_X86_REG_GS),
    ("fs_base", uc.UC_X86_REG_FS_BASE), ("gs_base", uc.UC_X86_REG_GS_BASE),
)  # fmt: skip

# regs[]: 0-18 are the i386 names, 19 + k the amd64 ones (FreeBSD sys/cddl/dev/dtrace/x86/regset.h).
_I386 = ("gs", "fs", "es", "ds", "rdi", "rsi", "rbp", "rsp", "rbx", "rdx", "rcx", "rax", "trapno", "err", "rip", "cs",
"rflags",
         "rsp", "ss")  # fmt: skip
_AMD64 = ("r15", "r14", "r13", "r12", "r11", "r10", "r9", "r8", "rdi", "rsi", "rbp", "rbx", "rdx", "rcx", "rax",
"trapno",
          "fs", "gs", "err", "es", "ds", "rip", "cs", "rflags", "rsp", "ss")  # fmt: skip

REGISTERS = RegisterFile(
    registers=(
        *(Register(name, number, slot("REGS", index)) for index, (name, number) in enumerate(_GENERAL)),
        Register("rip", uc.UC_X86_REG_RIP, slot("RIP")),
        *(Register(name, number) for name, number in _OTHER),
        # The state of the CPU behind them: the mode (`emu.isa.x86.linux`), the selectors of CPUX86State.segs.
        Register("hflags", uc.UC_X86_REG_INVALID, slot("HFLAGS")),
        Register("cs_selector", uc.UC_X86_REG_CS, segment(1)),
        Register("es_selector", uc.UC_X86_REG_ES, segment(0)),
        Register("ss_selector", uc.UC_X86_REG_SS, segment(2)),
        Register("ds_selector", uc.UC_X86_REG_DS, segment(3)),
        Register("fs_selector", uc.UC_X86_REG_FS, segment(4)),
        Register("gs_selector", uc.UC_X86_REG_GS, segment(5)),
        Register("fpcw", uc.UC_X86_REG_FPCW),
        Register("fpsw", uc.UC_X86_REG_FPSW),
        Register("fptag", uc.UC_X86_REG_FPTAG),
        Register("mxcsr", uc.UC_X86_REG_MXCSR),
        Register("cr2", uc.UC_X86_REG_CR2, slot("CR2")),
        Register("cr3", uc.UC_X86_REG_CR3, slot("CR3")),
        Register("cr4", uc.UC_X86_REG_CR4, slot("CR4")),
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
