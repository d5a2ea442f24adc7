"""The count of instructions, written into Unicorn's translated blocks.

A block hook is a call at the head of every block that Unicorn translates, and a second one, which
tests whether the run must end.  On short blocks the two calls take as long as the block.  So when a
block runs for the first time, the hook (`block` in `ir/blocks.ll`) replaces the calls before its
own return address, in the machine code that Unicorn made for the host, by the instructions that
count:

    what Unicorn has made                      what replaces it

    movabs $uc,%rdi                            mov  $words,%edi
    mov    $address,%esi                       mov  $entry,%esi
    mov    $size,%edx                          mov  TOTAL(%rdi),%rax
    movabs $MARKER,%rcx                        cmp  NEXT(%rdi),%rax
    call   block                               jae  late
    movabs $uc,%rdi                            addq $count,TOTAL(%rdi)
    xor    %esi,%esi                           mov  %rsi,BLOCK(%rdi)
    call   helper_check_exit_request           jmp  behind the second call

A block of 128 instructions or more stores only the lower half of BLOCK, since its count is longer.
Only code that is exactly the known code, with this engine's own addresses in it, is overwritten;
any other block still calls the hook, which counts by its table. `late` is a few bytes near the
translated code: they call `overdue`, which decides whether to stop, and continue at the second
call, which leaves the block.  To end a run, code sets the word NEXT to 0, so that the next block
takes this path.

Each changed block has an entry of its own, like those of the table, with the address to continue
at. Entries and words are in the lowest 2 GiB of the address space, where an address takes four
bytes of an instruction instead of eight: otherwise the code would not fit.  On a host that is not
Linux on x86-64 the calls remain.

Source: Unicorn 2.1.4, qemu/include/tcg/tcg-op.h gen_uc_tracecode() and check_exit_request(),
qemu/tcg/i386/tcg-target.inc.c; the bytes were observed.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import platform
import sys
import weakref
from typing import Final

from emu.engine.state import Word
from emu.native.libc import libc

# The last argument of the hook: a number that TCG encodes in ten bytes, and that no other code contains.
MARKER: Final = 0x7472_6170_6C69_6E65
# An entry: the words of a table entry, and the address to continue at, after the first call.
ENTRY_SIZE: Final = 24
# The number of blocks that are changed before all are translated again.
ENTRIES: Final = 1 << 17
_MAP_32BIT: Final = 0x40
_MAP_FIXED_NOREPLACE: Final = 0x10_0000
_MAP_FAILED: Final = ctypes.c_void_p(-1).value
# The largest distance from the code of a place for `late`, and the steps of the search: a jump reaches 2 GiB.
_STEP: Final = 1 << 26
_STEPS: Final = 24
# Where the bytes for `next_block` are behind those for `overdue`.
NEXT_BLOCK: Final = 32
# The same for `served_hook`.
SERVED_HOOK: Final = 64

POSSIBLE: Final = sys.platform == "linux" and platform.machine() == "x86_64"


def low_memory(size: int) -> mmap.mmap | None:
    """Return zeroed memory in the lowest 2 GiB; None if none is available."""
    if not POSSIBLE:
        return None
    found = _low(size)
    if found is None:
        # There is room for some 250 engines.  Those that are left over refer to themselves: they hold it until now.
        gc.collect()
        found = _low(size)
    return found


def _low(size: int) -> mmap.mmap | None:
    try:
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_32BIT)
    except OSError:
        return None


class Late:
    """The few bytes that written blocks jump to when a deadline may be due.

    `overdue` is the address of the function in `ir/inlined.ll`.  Behind them are those that call
    `next_block` (`emu.engine.jumps`), and those that call `served_hook`
    (`emu.engine.served_sites`).
    """

    def __init__(self, state: memoryview[int]) -> None:
        self._state = state
        self.overdue = 0
        self.next_block = 0
        self.served_hook = 0

    def place(self, code: int) -> None:
        """Put them near a translated block; if there is no room, no block is ever changed."""
        address = _near(code)
        if not address:
            self._state[Word.FREE] = 0
            return
        # movabs $overdue,%rax    call *%rax    jmp *%rax
        stub = b"\x48\xb8" + self.overdue.to_bytes(8, "little") + b"\xff\xd0\xff\xe0"
        ctypes.memmove(address, stub, len(stub))
        for place, function in ((NEXT_BLOCK, self.next_block), (SERVED_HOOK, self.served_hook)):
            # movabs $function,%rax    jmp *%rax
            stub = b"\x48\xb8" + function.to_bytes(8, "little") + b"\xff\xe0"
            ctypes.memmove(address + place, stub, len(stub))
        libc().mprotect(ctypes.c_void_p(address), mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC)
        weakref.finalize(self, _unmap, address)
        self._state[Word.OVERDUE], self._state[Word.LOWEST] = address, code


def _near(code: int) -> int:
    """Map a page near an address and return where it is; 0: there is no room."""
    page = code & -_STEP
    for distance in range(1, _STEPS):
        for wanted in (page - distance * _STEP, page + distance * _STEP):
            address = _map(wanted)
            if address == wanted:
                return wanted
            if address is not None:  # a kernel before 4.17 ignores the flag
                _unmap(address)
    return 0


def _map(address: int) -> int | None:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED_NOREPLACE
    writable = mmap.PROT_READ | mmap.PROT_WRITE
    found = libc().mmap(ctypes.c_void_p(address), mmap.PAGESIZE, writable, flags, -1, 0)
    return None if found == _MAP_FAILED else int(found)


def _unmap(address: int) -> None:
    libc().munmap(ctypes.c_void_p(address), mmap.PAGESIZE)
