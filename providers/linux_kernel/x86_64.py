"""The text of a Linux kernel on x86-64: endbr64, and a nop of 5 bytes as ftrace's pad.

Source: Linux 6.12 arch/x86/kernel/ftrace.c.
"""

from __future__ import annotations

from typing import Final

from emu.displaced.plans import Set, Store
from providers.linux_kernel.port import PUSH, Known, Port

_X86_ENDBR64: Final = bytes.fromhex("f30f1efa")
# nopw (%rax): the kernel's replacement of an endbr64 that is not needed (arch/x86/include/asm/ibt.h, gen_endbr_poison).
_X86_SEALED: Final = bytes.fromhex("660f1f00")
_X86_PAD: Final = bytes.fromhex("0f1f440000")
_X86_NOPS: Final = tuple(
    map(bytes.fromhex, ("6690", "90", "0f1f00", "0f1f4000", "0f1f440000", "660f1f440000", "0f1f8000000000"))
)
_X86_RETURN: Final = 0xC3
_X86_REX_B: Final = 0x41
_X86_REGISTERS: Final = (
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
)  # fmt: skip


def _x86_landing(code: bytes) -> int:
    return 4 if code.startswith((_X86_ENDBR64, _X86_SEALED)) else 0


def _x86_more(code: bytes) -> Known:
    """Decode push of a register, which is at the start of functions."""
    prefixed = code[0] == _X86_REX_B
    opcode = code[prefixed]
    if not 0x50 <= opcode <= 0x57:
        return None
    register = _X86_REGISTERS[opcode - 0x50 + 8 * prefixed]
    return PUSH, (Store(register, "rsp", -8), Set("rsp", "rsp", -8)), 1 + prefixed


PORT: Final = Port(
    lambda code: next((len(nop) for nop in _X86_NOPS if code.startswith(nop)), 0),
    _x86_landing,
    lambda code: 5 if code.startswith(_X86_PAD) else 0,
    lambda code: code[0] == _X86_RETURN,
    _x86_more,
)
