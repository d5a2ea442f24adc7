"""The vector registers and the syndrome in the frame of a signal: records, ended by an empty one.

Source: Linux 6.12 arch/arm64/include/uapi/asm/sigcontext.h, arch/arm64/kernel/signal.c
(setup_sigframe, parse_user_sigframe), arch/arm64/mm/fault.c.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from emu.isa.aarch64.unicorn import UNICORN
from emu.isa.signal_state import StateCpu, Trap, read_file, write_file

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


def page_fault(address: int, *, write: bool, fetch: bool, present: bool) -> Trap:
    """Return ESR_EL1 and the address after an access to a page that is not mapped, or not for it."""
    kind = _INSTRUCTION_ABORT if fetch else _DATA_ABORT
    syndrome = kind | _LONG | (_WRITE if write else 0) | (_PERMISSION if present else _TRANSLATION)
    return Trap(0, syndrome, address)


def exception(_number: int, _before: Trap) -> Trap:
    """Return what frames tell after another exception: nothing (arm64_notify_die)."""
    return Trap()


def save(cpu: StateCpu, error: int) -> bytes:
    """Return the records."""
    words = _WORDS.pack(cpu.read_register("fpsr"), cpu.read_register("fpcr"))
    data = _HEAD.pack(_VECTORS_MAGIC, _VECTORS_SIZE) + words + read_file(cpu, 0, _FILE)
    if error:
        data += _HEAD.pack(_ESR_MAGIC, _ESR_SIZE) + struct.pack("<Q", error)
    return data


def load(cpu: StateCpu, data: bytes) -> None:
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
