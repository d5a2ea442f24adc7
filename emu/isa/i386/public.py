"""i386 in portable mode.

Unicorn's calls neither read nor write the base of a segment in this mode, and a selector that is
written is looked up.  So the bases of fs and gs are remembered here, and loaded from a descriptor
table that the CPU sees for that moment.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from unicorn import x86_const as uc

from emu.isa.disassembly import CS_MODE_32
from emu.isa.unicorn_model import PublicCpu, PublicModel
from emu.isa.x86 import public as x86
from emu.isa.x86.delivery import deliver, interrupt
from emu.isa.x86.leaking import crowded

# The selectors of the segments by the names of their bases.
_SELECTORS: Final = {"fs_base": uc.UC_X86_REG_FS, "gs_base": uc.UC_X86_REG_GS}
_DESCRIPTOR: Final = 8
_RING3: Final = 3

_MODE: Final = x86.Mode(
    word=4,
    iret=b"\xcf",
    code=0x23,
    stack=0x2B,
    sp=uc.UC_X86_REG_ESP,
    flags=uc.UC_X86_REG_EFLAGS,
    pc=uc.UC_X86_REG_EIP,
    kernel_start=0xC000_0000,
    carried=(
        *x86.COMMON, *x86.vectors(8), uc.UC_X86_REG_EAX, uc.UC_X86_REG_ECX, uc.UC_X86_REG_EDX, uc.UC_X86_REG_EBX,
        uc.UC_X86_REG_ESP, uc.UC_X86_REG_EBP, uc.UC_X86_REG_ESI, uc.UC_X86_REG_EDI, uc.UC_X86_REG_EFLAGS,
        uc.UC_X86_REG_EIP,
    ),
    data=(uc.UC_X86_REG_DS, uc.UC_X86_REG_ES),
    more=(uc.UC_X86_REG_FS, uc.UC_X86_REG_GS),
    msrs=x86.EFER,
)  # fmt: skip


def _read_base(cpu: PublicCpu, base: str) -> int:
    return cpu.hidden.get(base, 0)


def _write_base(cpu: PublicCpu, value: int, base: str) -> None:
    cpu.hidden[base] = value
    _load(cpu, cpu.read_public(_SELECTORS[base]), base)


def _load(cpu: PublicCpu, selector: int, base: str) -> None:
    """Load fs or gs, with the base that is remembered."""
    if not selector & -_DESCRIPTOR:
        cpu.write_public(_SELECTORS[base], selector)
        return
    entry = x86.descriptor(code=False, level=_RING3, base=_read_base(cpu, base))
    place = selector & -_DESCRIPTOR

    def load(address: int) -> None:
        table = cpu.read_any(uc.UC_X86_REG_GDTR)
        cpu.write_public(uc.UC_X86_REG_GDTR, (0, address, place + _DESCRIPTOR - 1, 0))
        cpu.write_public(_SELECTORS[base], selector)
        cpu.write_public(uc.UC_X86_REG_GDTR, table)

    cpu.show(bytes(place) + entry, load)


def _handled(cpu: PublicCpu, number: int) -> None:
    selectors = {base: cpu.read_public(register) for base, register in _SELECTORS.items()}
    hidden = dict(cpu.hidden)
    x86.handled(cpu, number, _MODE)
    for base, selector in selectors.items():
        if cpu.read_public(_SELECTORS[base]) != selector:
            cpu.hidden |= hidden
            _load(cpu, selector, base)


PUBLIC: Final = PublicModel(
    deliver=partial(deliver, mode=_MODE),
    interrupt=partial(interrupt, mode=_MODE),
    prepare=partial(x86.prepare, mode=_MODE),
    handled=_handled,
    fatal=x86.FATAL,
    crowded=partial(crowded, mode=CS_MODE_32),
    reads={"hflags": x86.level, **{base: partial(_read_base, base=base) for base in _SELECTORS}},
    writes={
        "hflags": partial(x86.set_level, mode=_MODE),
        **{base: partial(_write_base, base=base) for base in _SELECTORS},
        "fs_selector": partial(_load, base="fs_base"),
        "gs_selector": partial(_load, base="gs_base"),
        **dict.fromkeys(
            ("cs_selector", "ss_selector", "ss_limit_and_flags", "ds_selector", "es_selector"), x86.keep_selector
        ),
    },
)
