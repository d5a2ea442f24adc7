"""Which address an instruction was after when it faulted.

Unicorn tells the page only; programs' handlers are told the byte.  It is worked out from the instruction's operands and
the registers, which are as they were before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import capstone

from emu.displaced import Displaced
from emu.engine.engine import Engine
from emu.engine.pages import PAGE
from emu.guest.base import BadAddressError
from emu.isa.base import Isa
from emu.isa.riscv64.length import instruction_length
from emu.isa.riscv64.registers import GENERAL

_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
_LARGEST: Final = 64
"""Bytes of the largest access."""
_RENAMED: Final = {"x29": "fp", "x30": "lr"}


def fault_address(engine: Engine, page: int) -> int:
    """Return the first byte, in the page at `page`, of what the instruction at pc accesses; else the page itself."""
    try:
        code = engine.read(engine.pc, 4)
        code += engine.read(engine.pc + 4, 12)
    except BadAddressError:
        pass
    else:
        for address in _addresses(engine, code):
            if page - _LARGEST < address < page + PAGE:
                return max(address, page)
    return page


def _addresses(engine: Engine, code: bytes) -> Iterator[int]:
    return _riscv(engine, code) if engine.isa.name == "riscv64" else _decoded(engine, code)


@cache
def _decoder(isa: Isa) -> capstone.Cs:
    decoder = capstone.Cs(*isa.capstone)
    decoder.detail = True
    return decoder


def _decoded(engine: Engine, code: bytes) -> Iterator[int]:
    insn: Any = next(_decoder(engine.isa).disasm(code, engine.pc, 1), None)
    if insn is None:
        return

    def value(number: int) -> int:
        name = insn.reg_name(number) if number else ""
        if not name:
            return 0
        if name in {"rip", "eip"}:
            return int(engine.pc + insn.size)
        name = _RENAMED.get(name, name)
        if name.startswith("w") and name[1:].isdigit():
            return engine.read_register("x" + name[1:]) & 0xFFFF_FFFF
        return engine.read_register(name) if name in engine.isa.registers.by_name else 0

    for operand in insn.operands:
        if operand.type == capstone.CS_OP_MEM:
            memory = operand.mem
            scale = getattr(memory, "scale", 1)
            index = value(memory.index) * scale
            if engine.isa.name == "aarch64":
                index = value(memory.index) << operand.shift.value
            segment = getattr(memory, "segment", 0)
            name = f"{insn.reg_name(segment)}_base" if segment else ""
            base = engine.read_register(name) if name in engine.isa.registers.by_name else 0
            yield base + value(memory.base) + index + memory.disp & engine.isa.address_mask
    if engine.isa.registers.link is None:  # x86: what calls and pushes store, what others may pop
        sp = engine.read_register(engine.isa.registers.sp)
        pushes = insn.group(capstone.CS_GRP_CALL) or insn.mnemonic.startswith("push")
        yield sp - engine.isa.word & engine.isa.address_mask if pushes else sp


def _riscv(engine: Engine, code: bytes) -> Iterator[int]:
    """Yield what a load or store of RV64GC accesses: a base and an offset (RISC-V unprivileged specification)."""
    length = instruction_length(code)
    insn = Displaced(int.from_bytes(code[:length], "little"), engine.pc)
    if length == 4:
        base = insn.bits(19, 15)
        offset = {0x03: insn.signed(31, 20), 0x07: insn.signed(31, 20), 0x2F: 0}.get(insn.bits(6, 0))
        if insn.bits(6, 0) in {0x23, 0x27}:
            offset = insn.signed(31, 25) << 5 | insn.bits(11, 7)
    elif insn.bits(1, 0) == 0:
        base = 8 + insn.bits(9, 7)
        word = insn.bits(12, 10) << 3 | insn.bits(6, 6) << 2 | insn.bits(5, 5) << 6
        double = insn.bits(12, 10) << 3 | insn.bits(6, 5) << 6
        offset = word if insn.bits(15, 13) in {2, 6} else double
    else:
        base = 2
        offsets = {
            1: insn.bits(12, 12) << 5 | insn.bits(6, 5) << 3 | insn.bits(4, 2) << 6,
            2: insn.bits(12, 12) << 5 | insn.bits(6, 4) << 2 | insn.bits(3, 2) << 6,
            3: insn.bits(12, 12) << 5 | insn.bits(6, 5) << 3 | insn.bits(4, 2) << 6,
            5: insn.bits(12, 10) << 3 | insn.bits(9, 7) << 6,
            6: insn.bits(12, 9) << 2 | insn.bits(8, 7) << 6,
            7: insn.bits(12, 10) << 3 | insn.bits(9, 7) << 6,
        }
        offset = offsets.get(insn.bits(15, 13))
    if offset is not None:
        yield engine.read_register(GENERAL[base]) + offset & _MASK
