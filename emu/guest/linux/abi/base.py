"""What differs between Linux on one ISA and on another: numbers, structures, the frame of a signal.

To add an ISA write `emu/guest/linux/abi/<isa>.py` with an `Abi`, and list it in
`emu/guest/linux/abi/tables.py`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from emu.guest.linux.inodes import Inode

BLOCK = 4096
SIGINFO_SIZE = 128


class SignalFrame(NamedTuple):
    """The frame of a signal as fields: where in it things are, in bytes from its start."""

    size: int
    siginfo: int
    ucontext: int
    stack: int
    """uc_stack: address, flags and size of the alternate stack."""
    mask: int
    """uc_sigmask."""
    registers: Mapping[str, int]
    """Register -> where it is saved."""
    fault_address: int | None
    """Where the address of a fault is put; None: nowhere but in the siginfo."""
    return_address: int | None
    """Where the address of the restorer is put; None: into the link register."""
    arguments: tuple[int, ...] = ()
    """Where the handler's arguments are put, if not in registers."""
    record: int | None = None
    """Where the frame record for unwinders is (frame pointer, link register); None: there is
    none."""


@dataclass(frozen=True, slots=True)
class OpenFlags:
    """The flags of open that differ between ISAs (fcntl.h)."""

    directory: int
    no_follow: int
    direct: int
    large_file: int


@dataclass(frozen=True, slots=True)
class Abi:
    """Linux on one ISA."""

    calls: Mapping[int, str]
    """System call by number."""
    machine: str
    """As uname says."""
    platform: str
    """AT_PLATFORM; "" for none."""
    hwcap: int
    """AT_HWCAP."""
    highest: int
    """End of user addresses: the stack is below it."""
    executable_base: int
    """Where a position-independent program is loaded (ELF_ET_DYN_BASE, without randomisation)."""
    call_number: str
    """Register of the system call's number."""
    call_result: str
    system_call: bytes
    """The instruction that makes a system call; making it again goes back by its length."""
    tls: str
    """Register of the thread pointer."""
    clone_tls_first: bool
    """Whether clone() takes the thread pointer before the child's tid address."""
    open_flags: OpenFlags
    stat: Callable[[Inode], bytes]
    """struct stat of an inode."""
    frame: SignalFrame
    restorer: bytes
    """Code that returns from a signal; b"": programs bring their own."""
    action_has_restorer: bool
    """Whether struct sigaction has a place for the restorer, used or not."""
    red_zone: int
    """Bytes below the stack pointer that a signal's frame must leave alone."""
    word: int = 8
    """Bytes of a long, a pointer, a size_t."""
    tls_is_descriptor: bool = False
    """Whether clone() is given a struct user_desc for the thread pointer."""


def times(inode: Inode) -> tuple[int, ...]:
    """Return access, modification and change time, each as seconds and nanoseconds."""
    return tuple(
        part for time in (inode.accessed, inode.modified, inode.changed) for part in divmod(time, 1_000_000_000)
    )


_GENERIC_STAT = struct.Struct("<QQIIIIQQqiiqqqqqqqII")


def generic_stat(inode: Inode) -> bytes:
    """Return struct stat of asm-generic (include/uapi/asm-generic/stat.h)."""
    return _GENERIC_STAT.pack(
        1, inode.number, inode.mode, inode.links, inode.uid, inode.gid, inode.device, 0,
        inode.size, BLOCK, 0, -(-inode.size // BLOCK) * (BLOCK // 512), *times(inode), 0, 0,
    )  # fmt: skip


def generic_frame(
    registers: Mapping[str, int], fault_address: int | None, size: int, record: int | None
) -> SignalFrame:
    """Return the frame that newer ISAs share: siginfo, then ucontext with the registers at 176 (struct rt_sigframe)."""
    ucontext = SIGINFO_SIZE
    registers_at = ucontext + 176
    return SignalFrame(
        size=size,
        siginfo=0,
        ucontext=ucontext,
        stack=ucontext + 16,
        mask=ucontext + 40,
        registers={name: registers_at + offset for name, offset in registers.items()},
        fault_address=None if fault_address is None else registers_at + fault_address,
        return_address=None,
        record=record,
    )
