"""The events of x86 instructions, by capstone's operands (Intel SDM, volume 2)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from emu.isa.disassembly import decoder
from emu.isa.events import Events
from emu.support.capstone_numbers import CS_ARCH_X86, CS_GRP_CALL, CS_GRP_JUMP, CS_GRP_RET, CS_OP_MEM

_LOAD, _STORE, _BRANCH = Events.LOAD, Events.STORE, Events.BRANCH
_TRANSFERS: Final = (CS_GRP_JUMP, CS_GRP_CALL, CS_GRP_RET)
# Instructions that name memory without an access to it.
_ADDRESSES: Final = ("lea", "nop", "prefetch", "invlpg", "clflush", "cldemote", "endbr")
# The access to the stack that a name implies.
_STACK: Final = {
    "push": _STORE,
    "call": _STORE,
    "pop": _LOAD,
    "ret": _LOAD,
    "leave": _LOAD,
    "enter": _STORE,
    "iret": _LOAD,
}


@lru_cache(1 << 13)
def events(code: bytes, mode: int) -> Events:
    """Return the events of the instruction that starts these bytes."""
    insn: Any = next(decoder((CS_ARCH_X86, mode), detail=True).disasm(code[:15], 0, 1), None)
    if insn is None:
        return Events(0)
    name = insn.mnemonic.split()[-1]
    found = _BRANCH if any(map(insn.group, _TRANSFERS)) else Events(0)
    for prefix, implied in _STACK.items():
        if name.startswith(prefix):
            found |= implied
    if not name.startswith(_ADDRESSES):
        for operand in insn.operands:
            if operand.type == CS_OP_MEM:
                found |= _STORE if name.startswith("set") else Events(operand.access & (_LOAD | _STORE))
    return found
