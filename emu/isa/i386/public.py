"""i386 in portable mode.

Unicorn's calls neither read nor write the base of a segment in this mode, and a selector that is
written is looked up.  So the base of gs, which Linux programs use, is remembered here, and loaded
from a descriptor table that the CPU sees for that moment.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from unicorn import x86_const as uc

from emu.capstone_numbers import CS_MODE_32
from emu.isa.unicorn_model import PublicCpu, PublicModel
from emu.isa.x86 import public as x86
from emu.isa.x86.delivery import deliver, interrupt
from emu.isa.x86.leaking import crowded

_GS_BASE, _FS_BASE = "gs_base", "fs_base"
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


def _read_base(cpu: PublicCpu) -> int:
    return cpu.hidden.get(_GS_BASE, 0)


def _read_fs_base(cpu: PublicCpu) -> int:
    return cpu.hidden.get(_FS_BASE, 0)


def _write_fs_base(cpu: PublicCpu, value: int) -> None:
    """Remember the base of fs, which no Linux program uses."""
    cpu.hidden[_FS_BASE] = value


def _write_base(cpu: PublicCpu, value: int) -> None:
    cpu.hidden[_GS_BASE] = value
    _load(cpu, cpu.read_public(uc.UC_X86_REG_GS))


def _load(cpu: PublicCpu, selector: int) -> None:
    """Load gs, with the base that is remembered."""
    if not selector & -_DESCRIPTOR:
        return
    entry = x86.descriptor(code=False, level=_RING3, base=_read_base(cpu))
    place = selector & -_DESCRIPTOR

    def load(address: int) -> None:
        table = cpu.read_any(uc.UC_X86_REG_GDTR)
        cpu.write_public(uc.UC_X86_REG_GDTR, (0, address, place + _DESCRIPTOR - 1, 0))
        cpu.write_public(uc.UC_X86_REG_GS, selector)
        cpu.write_public(uc.UC_X86_REG_GDTR, table)

    cpu.show(bytes(place) + entry, load)


def _handled(cpu: PublicCpu, number: int) -> None:
    selector = cpu.read_public(uc.UC_X86_REG_GS)
    hidden = dict(cpu.hidden)
    x86.handled(cpu, number, _MODE)
    if cpu.read_public(uc.UC_X86_REG_GS) != selector:
        cpu.hidden |= hidden
        _load(cpu, selector)


PUBLIC: Final = PublicModel(
    deliver=partial(deliver, mode=_MODE),
    interrupt=partial(interrupt, mode=_MODE),
    prepare=partial(x86.prepare, mode=_MODE),
    handled=_handled,
    fatal=x86.FATAL,
    crowded=partial(crowded, mode=CS_MODE_32),
    reads={"hflags": x86.level, "gs_base": _read_base, "fs_base": _read_fs_base},
    writes={
        "hflags": partial(x86.set_level, mode=_MODE),
        "gs_base": _write_base,
        "fs_base": _write_fs_base,
        "gs_selector": _load,
        **dict.fromkeys(("cs_selector", "ss_selector", "ds_selector", "es_selector"), x86.keep_selector),
    },
)
