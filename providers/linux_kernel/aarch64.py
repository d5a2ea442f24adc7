"""The text of a Linux kernel on AArch64: bti or paciasp, and ftrace's pad.

The pad is two nops; the kernel replaces the first by `mov x9, x30` when it boots.

Source: Linux 6.12 arch/arm64/kernel/ftrace.c.
"""

from __future__ import annotations

from typing import Final

from emu.displaced.decision import Displaced
from emu.displaced.plans import Set
from emu.isa.aarch64.traps import JUMP
from providers.linux_kernel.port import ARITHMETIC, Known, Port

_A64_NOP: Final = JUMP.nop
_A64_MOV_X9_LR: Final = bytes.fromhex("e9031eaa")
_A64_RET: Final = bytes.fromhex("c0035fd6")
_A64_HINT: Final = 0xD503_201F
# hint #number: bti in its four forms, paciasp and pacibsp, which are nops on a CPU without them, as on this one.
_A64_LANDING: Final = frozenset({32, 34, 36, 38, 25, 27})


def _a64_landing(code: bytes) -> int:
    word = int.from_bytes(code[:4], "little")
    return 4 if word & 0xFFFF_F01F == _A64_HINT and word >> 5 & 0x7F in _A64_LANDING else 0


def _a64_pad(code: bytes) -> int:
    return 8 if code[4:8] == _A64_NOP and code[:4] in {_A64_NOP, _A64_MOV_X9_LR} else 0


def _a64_more(code: bytes) -> Known:
    """Decode mov x9, x30, the kernel's replacement of a pad's first nop, and sub sp, sp, #imm."""
    if code.startswith(_A64_MOV_X9_LR):
        return ARITHMETIC, (Set("x9", "lr"),), 4
    insn = Displaced(int.from_bytes(code[:4], "little"), 0)
    if insn.word & 0xFF80_03FF == 0xD100_03FF:
        return ARITHMETIC, (Set("sp", "sp", -(insn.bits(21, 10) << 12 * insn.bits(22, 22))),), 4
    return None


PORT: Final = Port(
    lambda code: 4 if code.startswith(_A64_NOP) else 0,
    _a64_landing,
    _a64_pad,
    lambda code: code == _A64_RET,
    _a64_more,
)
