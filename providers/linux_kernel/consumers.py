"""The consumers of the kernel's uprobes: each is for one offset of a file, in one address space.

    register    uprobe_register(): the kernel writes the breakpoint into a copy of the page of each
                address space that the consumer's filter accepts, now and whenever one maps the file
    (a hit)     the kernel calls the consumer's handler, a function of ours
    unregister  uprobe_unregister_nosync(): the kernel maps the pages of the file again

The filter is code of ours, too: it accepts one address space.  A forked child has its parent's
breakpoints nevertheless, because it has copies of its pages: the handler returns 1 there
(UPROBE_HANDLER_REMOVE), so the kernel removes each breakpoint from the child at its first hit.

Source: Linux 6.12 kernel/events/uprobes.c (uprobe_register, handler_chain,
uprobe_unregister_nosync), include/linux/uprobes.h.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from emu.guest.linux_kernel.guest import LinuxKernelGuest
from emu.guest.linux_kernel.kernel_calls import KEY, KernelCallError, KernelCalls, error_of
from emu.support.immutable import immutable

# Offset of a consumer's number in the memory after its structure.
NUMBER: Final = KEY + 8
# Size of a consumer with that memory.
SIZE: Final = 128
_POINTER: Final = struct.Struct("<Q")
_KEYS: Final = struct.Struct("<QQ")
# The kernel's function that allocates memory, by its names since Linux 6.10 and before.
_ALLOCATORS: Final = ("vmalloc_noprof", "vmalloc")
# The bytes that are allocated at a time.
_CHUNK: Final = 1 << 16
# The address space of consumers for all.
EVERYWHERE: Final = 0
# An address that no struct mm_struct has.
_NO_SPACE: Final = 1


class FileOffset(NamedTuple):
    """An offset of a file that is watched, in one address space or in all."""

    space: int
    """Address of the struct mm_struct; EVERYWHERE: in all address spaces."""
    file: int
    """Address of the inode."""
    offset: int


class RefusedError(Exception):
    """The kernel refuses a breakpoint; `number` is its error number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@immutable
class Consumer:
    """A consumer that is registered."""

    number: int
    address: int
    """Address of its struct uprobe_consumer."""
    uprobe: int
    """Address of the struct uprobe."""
    position: FileOffset


class Consumers:
    """The consumers of one kernel.  Their memory is never used again: the kernel may still read it."""

    def __init__(self, guest: LinuxKernelGuest, calls: KernelCalls) -> None:
        """Raise `emu.guest.linux_kernel.files.btf.BtfError` if the kernel has no uprobes."""
        self._guest = guest
        self._calls = calls
        btf = guest.facts.btf
        self._handler_at = btf.offset("uprobe_consumer", "handler")
        self._filter_at = btf.offset("uprobe_consumer", "filter")
        assert btf.struct_size("uprobe_consumer") <= KEY
        self._free = range(0)
        """What is left of the memory for consumers."""
        self._positions: dict[FileOffset, Consumer] = {}
        self._addresses: dict[int, Consumer] = {}
        self._numbers = 0

    def __len__(self) -> int:
        """Return the number of offsets that are watched."""
        return len(self._positions)

    def of(self, address: int) -> Consumer | None:
        """Return the consumer whose structure has an address."""
        return self._addresses.get(address)

    def register(self, position: FileOffset, semaphore: int = 0) -> Consumer:
        """Watch an offset; `semaphore` is the offset of its counter in the file, 0: none.

        Raises `RefusedError`, and `KernelCallError`.
        """
        known = self._positions.get(position)
        if known is not None:
            return known
        content = bytearray(SIZE)
        _POINTER.pack_into(content, self._handler_at, self._calls.callback)
        if position.space != EVERYWHERE:
            _POINTER.pack_into(content, self._filter_at, self._calls.equal)
        _KEYS.pack_into(content, KEY, position.space, self._numbers)
        address = self._take()
        self._guest.store(address, bytes(content))
        uprobe = self._calls.call("uprobe_register", position.file, position.offset, semaphore, address)
        number = error_of(uprobe)
        if number:
            raise RefusedError(number)
        made = self._positions[position] = self._addresses[address] = Consumer(self._numbers, address, uprobe, position)
        self._numbers += 1
        return made

    def unregister(self, consumer: Consumer) -> None:
        """Stop watching an offset.

        Raises `KernelCallError`, and `emu.guest.linux_kernel.errors.LinuxKernelError`.
        """
        self._forget(consumer)
        self._calls.call("uprobe_unregister_nosync", consumer.uprobe, consumer.address)

    def abandon(self, consumer: Consumer) -> None:
        """Make the filter of a consumer accept no address space: its own has ended.

        The kernel keeps the consumer, for this may be called where functions may not be.
        """
        self._forget(consumer)
        self._guest.store(consumer.address + KEY, _POINTER.pack(_NO_SPACE))

    def _forget(self, consumer: Consumer) -> None:
        del self._positions[consumer.position]
        del self._addresses[consumer.address]

    def _take(self) -> int:
        """Return the address of a new consumer, in memory that the kernel allocates."""
        if len(self._free) < SIZE:
            known = self._guest.facts.symbols
            address = self._calls.call(next((name for name in _ALLOCATORS if known.get(name)), _ALLOCATORS[0]), _CHUNK)
            if not self._guest.isa.is_kernel_address(address):
                raise KernelCallError("the kernel has no memory for more probes")
            self._free = range(address, address + _CHUNK)
        address, self._free = self._free.start, self._free[SIZE:]
        return address
