"""The text of a Linux kernel on RISC-V: two nops of 4 bytes are ftrace's pad.

Source: Linux 6.12 arch/riscv/include/asm/ftrace.h.
"""

from __future__ import annotations

from typing import Final

from emu.displaced.decision import Displaced
from emu.displaced.plans import Set
from providers.linux_kernel.port import ARITHMETIC, Known, Port

_RV_NOP: Final = bytes.fromhex("13000000")
_RV_C_NOP: Final = bytes.fromhex("0100")
_RV_RETURNS: Final = frozenset({bytes.fromhex("8280"), bytes.fromhex("67800000")})
_RV_SP: Final = 2


def _rv_nop(code: bytes) -> int:
    return 4 if code.startswith(_RV_NOP) else 2 if code.startswith(_RV_C_NOP) else 0


def _rv_pad(code: bytes) -> int:
    return 8 if code.startswith(_RV_NOP * 2) else 0


def _rv_more(code: bytes) -> Known:
    """Decode addi of sp, compressed or not, which is at the start of functions."""
    insn = Displaced(int.from_bytes(code[:4], "little"), 0)
    half = insn.word & 0xFFFF
    if half & 0xEF83 == 0x6101:  # c.addi16sp
        value = insn.signed(12, 12) << 9 | insn.bits(6, 6) << 4 | insn.bits(5, 5) << 6
        value |= insn.bits(4, 3) << 7 | insn.bits(2, 2) << 5
        return ARITHMETIC, (Set("sp", "sp", value),), 2
    if half & 0xEF83 == 0x0101 and half != int.from_bytes(_RV_C_NOP, "little"):  # c.addi sp
        return ARITHMETIC, (Set("sp", "sp", insn.signed(12, 12) << 5 | insn.bits(6, 2)),), 2
    if insn.word & 0x7FFF == 0x0013 | _RV_SP << 7 and insn.bits(19, 15) == _RV_SP:  # addi sp, sp
        return ARITHMETIC, (Set("sp", "sp", insn.signed(31, 20)),), 4
    return None


PORT: Final = Port(_rv_nop, lambda _code: 0, _rv_pad, lambda code: code in _RV_RETURNS, _rv_more)
