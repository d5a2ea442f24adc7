"""Which address an instruction was after when it faulted.

Unicorn tells the page only; programs' handlers are told the byte.  It is worked out from the
instruction's operands and the registers, which are as they were before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

import capstone

from emu.disassembly import decoder
from emu.displaced import Displaced
from emu.engine.access import Access
from emu.engine.engine import Engine
from emu.engine.pages import PAGE
from emu.guest.base import BadAddressError
from emu.isa.base import Isa
from emu.isa.riscv64.length import instruction_length
from emu.isa.riscv64.registers import GENERAL
from emu.words import WORD_MASK

# Bytes of the largest access.
_LARGEST: Final = 64
_PCS: Final = {"rip", "eip"}
_RENAMED: Final = {"x29": "fp", "x30": "lr"}
_EITHER: Final = Access.READ | Access.WRITE
# Instructions whose operands are not decoded again.
_REMEMBERED: Final = 1024


def fault_address(engine: Engine, page: int, access: Access) -> int:
    """Return the first byte, in the page at `page`, of what the instruction at pc accesses; else the page itself."""
    try:
        code = engine.read(engine.pc, 4)
        code += engine.read(engine.pc + 4, 12)
    except BadAddressError:
        pass
    else:
        for address in _addresses(engine, code, access):
            if page - _LARGEST < address < page + PAGE:
                return max(address, page)
    return page


def _addresses(engine: Engine, code: bytes, access: Access) -> Iterator[int]:
    if engine.isa.name == "riscv64":
        return _riscv(engine, code)
    return (place.address(engine) for place in _places(engine.isa, code) if access in place.access)


class _Register(NamedTuple):
    """What a register brings to an address."""

    name: str
    mask: int = WORD_MASK
    scale: int = 1


class _Place(NamedTuple):
    """Where an instruction accesses memory: registers, and what is added to them."""

    access: Access
    registers: tuple[_Register, ...]
    displacement: int = 0
    from_pc: bool = False

    def address(self, engine: Engine) -> int:
        """Return the address, from the registers as they are."""
        address = self.displacement + (engine.pc if self.from_pc else 0)
        for name, mask, scale in self.registers:
            address += (engine.read_register(name) & mask) * scale
        return address & engine.isa.address_mask


@lru_cache(_REMEMBERED)
def _places(isa: Isa, code: bytes) -> tuple[_Place, ...]:
    """Return where an instruction accesses memory; nothing where it is none."""
    insn: Any = next(decoder(isa.capstone, detail=True).disasm(code, 0, 1), None)
    if insn is None:
        return ()
    stack: tuple[_Place, ...] = ()
    access = _EITHER  # the decoder does not always know what is done with an operand
    if isa.registers.link is None:  # x86: what calls and pushes store, what others may pop
        sp = (_Register(isa.registers.sp),)
        if insn.group(capstone.CS_GRP_CALL) or insn.mnemonic.startswith("push"):
            access, stack = Access.READ, (_Place(Access.WRITE, sp, -isa.word),)
        else:
            access = Access.WRITE if insn.mnemonic.startswith("pop") else _EITHER
            stack = (_Place(Access.READ, sp),)
    operands = (_place(isa, insn, operand, access) for operand in insn.operands if operand.type == capstone.CS_OP_MEM)
    return (*operands, *stack)


def _place(isa: Isa, insn: Any, operand: Any, access: Access) -> _Place:
    memory = operand.mem
    segment = getattr(memory, "segment", 0)
    scale = 1 << operand.shift.value if isa.name == "aarch64" else getattr(memory, "scale", 1)
    parts = ((memory.base, 1), (memory.index, scale))
    named = [(insn.reg_name(number), scale) for number, scale in parts if number]
    if segment:
        named.append((f"{insn.reg_name(segment)}_base", 1))
    from_pc = any(name in _PCS for name, _ in named)
    known = (_register(isa, name, scale) for name, scale in named if name not in _PCS)
    registers = tuple(register for register in known if register.name in isa.registers.by_name)
    return _Place(access, registers, memory.disp + (insn.size if from_pc else 0), from_pc)


def _register(isa: Isa, name: str, scale: int) -> _Register:
    if isa.name == "aarch64" and name.startswith("w") and name[1:].isdigit():
        return _Register("x" + name[1:], 0xFFFF_FFFF, scale)
    return _Register(_RENAMED.get(name, name), WORD_MASK, scale)


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
        yield engine.read_register(GENERAL[base]) + offset & WORD_MASK
