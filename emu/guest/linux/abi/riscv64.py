"""Linux on RISC-V (arch/riscv/include/uapi/asm)."""

from __future__ import annotations

from typing import Final

from emu.guest.linux.abi.base import Abi, OpenFlags, generic_frame, generic_stat
from emu.guest.linux.abi.generic_calls import CALLS
from emu.isa.riscv64.registers import GENERAL

# struct sigcontext: user_regs_struct, which is pc, then x1 to x31; then the floating-point state.
_REGISTERS: Final = ("pc", *GENERAL[1:])
_FLOATING_POINT: Final = 528

ABI: Final = Abi(
    calls=CALLS,
    machine="riscv64",
    platform="",
    hwcap=sum(1 << ord(letter) - ord("a") for letter in "imafdc"),
    highest=0x3F_FFFF_F000,
    executable_base=0x2A_AAAA_A000,
    call_number="a7",
    call_result="a0",
    system_call=(0x00000073).to_bytes(4, "little"),
    tls="tp",
    clone_tls_first=True,
    open_flags=OpenFlags(directory=0o200000, no_follow=0o400000, direct=0o40000, large_file=0o100000),
    stat=generic_stat,
    frame=generic_frame(
        {name: 8 * place for place, name in enumerate(_REGISTERS)},
        fault_address=None,
        size=128 + 176 + 8 * len(_REGISTERS) + _FLOATING_POINT,
        record=None,
    ),
    restorer=(0x08B00893).to_bytes(4, "little") + (0x00000073).to_bytes(4, "little"),  # li a7, 139; ecall
    action_has_restorer=False,
    red_zone=0,
)
