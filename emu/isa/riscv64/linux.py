"""Linux on RISC-V (arch/riscv/include/uapi/asm).

The floating-point registers are in the frame of a signal as struct __riscv_d_ext_state.

Source: Linux 6.12 arch/riscv/include/uapi/asm/ptrace.h, arch/riscv/kernel/signal.c.
"""

from __future__ import annotations

import struct
from typing import Final

from emu.isa.linux_abi import (
    ILLEGAL,
    MISALIGNED,
    PERSONALITY_DOMAIN,
    LinuxAbi,
    OpenFlags,
    PersonalityRules,
    generic_frame,
    generic_stat,
)
from emu.isa.linux_calls import CALLS
from emu.isa.linux_signals import FrameState, StateCpu, read_file, write_file
from emu.isa.riscv64.elf import ELF
from emu.isa.riscv64.instruction import accesses
from emu.isa.riscv64.registers import GENERAL
from emu.isa.riscv64.unicorn import UNICORN
from emu.support.words import WORD_MASK

_FILE: Final = UNICORN.vectors[0]
_FCSR_AT: Final = 32 * 8


def _save(cpu: StateCpu, _error: int) -> bytes:
    """Return the registers, then fcsr."""
    return read_file(cpu, 0, _FILE) + struct.pack("<I", cpu.read_register("fcsr"))


def _load(cpu: StateCpu, data: bytes) -> None:
    """Set the registers."""
    write_file(cpu, 0, _FILE, data[:_FCSR_AT])
    cpu.write_register("fcsr", struct.unpack_from("<I", data, _FCSR_AT)[0])


# struct sigcontext: user_regs_struct, which is pc, then x1 to x31; then the floating-point state.
_REGISTERS: Final = ("pc", *GENERAL[1:])
_FLOATING_POINT: Final = 528

_PROBE_REGISTERS: Final = {
    "epc": "pc",
    **{name: name for name in ("ra", "sp", "gp", "tp")},
    **{name: name for name in ("t" + str(n) for n in range(7))},
    **{name: name for name in ("s" + str(n) for n in range(12))},
    **{name: name for name in ("a" + str(n) for n in range(8))},
}
# li a7, 139; ecall
_RESTORER: Final = (0x08B00893).to_bytes(4, "little") + (0x00000073).to_bytes(4, "little")

LINUX: Final = LinuxAbi(
    calls=CALLS,
    machine="riscv64",
    personality=PersonalityRules("riscv", PERSONALITY_DOMAIN, keeps_linux32=True),
    elf_machine=ELF.number,
    platform="",
    hwcap=sum(1 << ord(letter) - ord("a") for letter in "imafdc"),
    highest=0x3F_FFFF_F000,
    executable_base=0x2A_AAAA_A000,
    call_number="a7",
    call_number_mask=WORD_MASK,
    call_result="a0",
    system_call=(0x00000073).to_bytes(4, "little"),
    call_overwrites={},
    tls="tp",
    clone_tls_first=True,
    open_flags=OpenFlags(directory=0o200000, no_follow=0o400000, direct=0o40000, large_file=0o100000),
    stat=generic_stat,
    frame=generic_frame(
        {name: 8 * index for index, name in enumerate(_REGISTERS)},
        trap={},
        state=FrameState(size=_FLOATING_POINT, save=_save, load=_load, at=8 * len(_REGISTERS)),
        size=128 + 176 + 8 * len(_REGISTERS) + _FLOATING_POINT,
        record=None,
    ),
    restorer=_RESTORER,
    trampolines=(_RESTORER,),
    action_has_restorer=False,
    red_zone=0,
    faults={2: ILLEGAL, 0: MISALIGNED, 4: MISALIGNED, 6: MISALIGNED},
    probe_registers=_PROBE_REGISTERS,
    # FS: dirty, which no program can see, so that mstatus does not change; user mode, which may not write it.
    initial_registers={"mstatus": 3 << 13, "priv": 0},
    accesses=accesses,
)
