"""x86-64 in portable mode."""

from __future__ import annotations

from functools import partial
from typing import Final

from unicorn import x86_const as uc

from emu.isa.disassembly import CS_MODE_64
from emu.isa.unicorn_model import PublicModel
from emu.isa.x86 import public as x86
from emu.isa.x86.delivery import deliver, interrupt, system_call
from emu.isa.x86.leaking import crowded

_MODE: Final = x86.Mode(
    word=8,
    iret=b"\x48\xcf",
    code=0x33,
    stack=0x2B,
    sp=uc.UC_X86_REG_RSP,
    flags=uc.UC_X86_REG_EFLAGS,
    pc=uc.UC_X86_REG_RIP,
    kernel_start=1 << 63,
    carried=(
        *x86.COMMON, *x86.vectors(16), uc.UC_X86_REG_FS_BASE, uc.UC_X86_REG_GS_BASE, uc.UC_X86_REG_CR8,
        uc.UC_X86_REG_RAX, uc.UC_X86_REG_RCX, uc.UC_X86_REG_RDX, uc.UC_X86_REG_RBX, uc.UC_X86_REG_RSP,
        uc.UC_X86_REG_RBP, uc.UC_X86_REG_RSI, uc.UC_X86_REG_RDI, *range(uc.UC_X86_REG_R8, uc.UC_X86_REG_R15 + 1),
        uc.UC_X86_REG_EFLAGS, uc.UC_X86_REG_RIP,
    ),
)  # fmt: skip

PUBLIC: Final = PublicModel(
    deliver=partial(deliver, mode=_MODE),
    interrupt=partial(interrupt, mode=_MODE),
    prepare=partial(x86.prepare, mode=_MODE),
    handled=partial(x86.handled, mode=_MODE),
    system_call=partial(system_call, mode=_MODE),
    fatal=x86.FATAL,
    crowded=partial(crowded, mode=CS_MODE_64),
    reads={"hflags": x86.level},
    writes={
        "hflags": partial(x86.set_level, mode=_MODE),
        **dict.fromkeys((f"{name}_selector" for name in ("cs", "ss", "ds", "es", "fs", "gs")), x86.keep_selector),
    },
)
