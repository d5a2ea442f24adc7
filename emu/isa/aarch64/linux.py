"""Linux on AArch64 (arch/arm64/include/uapi/asm).

The frame of a signal has the vector registers and the syndrome as records, ended by an empty one.

Source: Linux 6.12 arch/arm64/include/uapi/asm/sigcontext.h, arch/arm64/kernel/signal.c
(setup_sigframe, parse_user_sigframe), arch/arm64/mm/fault.c.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from emu.isa.aarch64.elf import ELF
from emu.isa.aarch64.unicorn import UNICORN
from emu.isa.linux_abi import (
    ILLEGAL,
    MISALIGNED,
    READ_IMPLIES_EXEC,
    LinuxAbi,
    OpenFlags,
    PersonalityRules,
    generic_frame,
    generic_stat,
)
from emu.isa.linux_calls import CALLS
from emu.isa.linux_signals import FrameState, StateCpu, Trap, read_file, write_file
from emu.isa.unicorn_model import ModelledCpu
from emu.support.words import WORD_MASK

_HEAD: Final = struct.Struct("<II")
_WORDS: Final = struct.Struct("<II")
_VECTORS_MAGIC, _ESR_MAGIC = 0x4650_8001, 0x4553_5201
_FILE: Final = UNICORN.vectors[0]
_VECTORS_SIZE: Final = _HEAD.size + _WORDS.size + 32 * 16
_ESR_SIZE: Final = 16
# The syndrome of an abort from EL0, of an instruction of 32 bits: class, and faults of the last level of page tables.
_INSTRUCTION_ABORT, _DATA_ABORT = 0x20 << 26, 0x24 << 26
_LONG, _WRITE = 1 << 25, 1 << 6
_TRANSLATION, _PERMISSION = 0x7, 0xF


def _page_fault(address: int, *, write: bool, fetch: bool, present: bool) -> Trap:
    """Return ESR_EL1 and the address after an access to a page that is not mapped, or not for it."""
    kind = _INSTRUCTION_ABORT if fetch else _DATA_ABORT
    syndrome = kind | _LONG | (_WRITE if write else 0) | (_PERMISSION if present else _TRANSLATION)
    return Trap(0, syndrome, address)


def _exception(_number: int, _before: Trap) -> Trap:
    """Return what frames tell after another exception: nothing (arm64_notify_die)."""
    return Trap()


def _save(cpu: StateCpu, error: int) -> bytes:
    """Return the records."""
    words = _WORDS.pack(cpu.read_register("fpsr"), cpu.read_register("fpcr"))
    data = _HEAD.pack(_VECTORS_MAGIC, _VECTORS_SIZE) + words + read_file(cpu, 0, _FILE)
    if error:
        data += _HEAD.pack(_ESR_MAGIC, _ESR_SIZE) + struct.pack("<Q", error)
    return data


def _load(cpu: StateCpu, data: bytes) -> None:
    """Set the registers by the record that has them, if there is one."""
    content = dict(_records(data)).get(_VECTORS_MAGIC)
    if content is None or len(content) != _VECTORS_SIZE - _HEAD.size:
        return
    fpsr, fpcr = _WORDS.unpack_from(content)
    cpu.write_register("fpsr", fpsr)
    cpu.write_register("fpcr", fpcr)
    write_file(cpu, 0, _FILE, content[_WORDS.size :])


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the mark and the content of each record."""
    at = 0
    while at + _HEAD.size <= len(data):
        magic, size = _HEAD.unpack_from(data, at)
        if not magic or size < _HEAD.size:
            return
        yield magic, data[at + _HEAD.size : at + size]
        at += size


# struct sigcontext: fault_address, regs[31], sp, pc, pstate, then records of the vector unit, 4096 bytes.
_REGISTERS: Final = (*(f"x{number}" for number in range(29)), "fp", "lr", "sp", "pc", "nzcv")
_RECORDS: Final = 288
_RECORDS_SIZE: Final = 4096
_FRAME: Final = 128 + 176 + _RECORDS + _RECORDS_SIZE

_PROBE_REGISTERS: Final = {
    **{f"x{number}": f"x{number}" for number in range(29)},
    "x29": "fp",
    "x30": "lr",
    "lr": "lr",
    "sp": "sp",
    "pc": "pc",
    "pstate": "nzcv",
}

# CRn, CRm, op0, op1, op2.
_SCTLR_EL1: Final = (1, 0, 3, 0, 0)
# arch/arm64/include/asm/sysreg.h: programs may use DC ZVA, CTR_EL0 and the cache instructions by address (DZE, UCT,
# UCI), and wait (nTWI, nTWE).
_SCTLR_USER: Final = 1 << 14 | 1 << 15 | 1 << 26 | 1 << 16 | 1 << 18
# arch/arm64/mm/proc.S (__cpu_setup): TBI0, the upper byte of a program's addresses is ignored.  With TBID0 a jump to
# such an address faults, so that one by the CPU and one by a plan arrive alike: the kernel takes the byte off.
_TCR_EL1: Final = (2, 0, 3, 0, 2)
_TCR_USER: Final = 1 << 37 | 1 << 51
# drivers/clocksource/arm_arch_timer.c: programs may read CNTVCT_EL0 and CNTFRQ_EL0 (EL0VCTEN), and not CNTPCT_EL0.
_CNTKCTL_EL1: Final = (14, 1, 3, 0, 0)
_CNTKCTL_USER: Final = 1 << 1


def _prepare(cpu: ModelledCpu) -> None:
    # After the exception level is set: QEMU reads the level again when a system register is written.
    cpu.write_public("cp_reg", (*_SCTLR_EL1, _SCTLR_USER))
    cpu.write_public("cp_reg", (*_TCR_EL1, _TCR_USER))
    cpu.write_public("cp_reg", (*_CNTKCTL_EL1, _CNTKCTL_USER))


# mov x8, #139; svc #0
_RESTORER: Final = (0xD2801168).to_bytes(4, "little") + (0xD4000001).to_bytes(4, "little")

LINUX: Final = LinuxAbi(
    calls=CALLS,
    machine="aarch64",
    personality=PersonalityRules("aarch64", READ_IMPLIES_EXEC, has_linux32=False),
    elf_machine=ELF.number,
    platform="aarch64",
    hwcap=0xFB,  # fp asimd aes pmull sha1 sha2 crc32: the features of the modelled CPU
    highest=0xFFFF_FFFF_F000,
    executable_base=0xAAAA_AAAA_A000,
    call_number="x8",
    call_number_mask=0xFFFF_FFFF,
    call_result="x0",
    system_call=(0xD4000001).to_bytes(4, "little"),
    call_overwrites={},
    tls="tpidr_el0",
    clone_tls_first=True,
    open_flags=OpenFlags(directory=0o40000, no_follow=0o100000, direct=0o200000, large_file=0o400000),
    stat=generic_stat,
    frame=generic_frame(
        {name: 8 + 8 * index for index, name in enumerate(_REGISTERS)},
        trap={"address": 0},
        state=FrameState(size=_RECORDS_SIZE, save=_save, load=_load, at=_RECORDS),
        size=_FRAME + 16,
        record=_FRAME,
    ),
    restorer=_RESTORER,
    trampolines=(_RESTORER,),
    action_has_restorer=True,
    red_zone=0,
    page_fault=_page_fault,
    exception=_exception,
    faults={1: ILLEGAL, 3: MISALIGNED, 4: MISALIGNED},
    probe_registers=_PROBE_REGISTERS,
    # FPEN: floating point does not trap; EL0, and no condition holds.
    initial_registers={"cpacr_el1": 3 << 20, "pstate": 0},
    prepare=_prepare,
    operand_names={
        "x29": ("fp", WORD_MASK),
        "x30": ("lr", WORD_MASK),
        **{f"w{number}": (f"x{number}", 0xFFFF_FFFF) for number in range(29)},
        "w29": ("fp", 0xFFFF_FFFF),
        "w30": ("lr", 0xFFFF_FFFF),
    },
)
