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
any other block still calls the hook, which counts by its table. `late` is a few bytes on the page
behind the translated code: they call `overdue`, which decides whether to stop, and continue at the
second call, which leaves the block.  To end a run, code sets the word NEXT to 0, so that the next
block takes this path.

Each changed block has an entry of its own, like those of the table, with the address to continue
at. Entries and words are in the lowest 2 GiB of the address space, where an address takes four
bytes of an instruction instead of eight: otherwise the code would not fit.  On another
build of Unicorn the calls remain.

Source: Unicorn 2.1.4, qemu/include/tcg/tcg-op.h gen_uc_tracecode() and check_exit_request(),
qemu/tcg/i386/tcg-target.inc.c; the bytes were observed.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import platform
import sys
from itertools import pairwise
from pathlib import Path
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
# Where the bytes for `go_on` are behind those for `overdue`.
GO_ON: Final = 32
# The same for `served_hook` and `asked_block`.
SERVED_HOOK: Final = 64
ASKED_BLOCK: Final = 96

# mov %rbp,%rdi    movabs $..,%rax    jmp *%rax    call *%rax, then jmp *%rax
_ENV: Final = b"\x48\x89\xef"
_LOAD: Final = b"\x48\xb8"
_JUMP: Final = b"\xff\xe0"
_CALL_JUMP: Final = b"\xff\xd0" + _JUMP

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
    `go_on` (`emu.engine.qemu.jump_cache`), those that call `served_hook`
    (`emu.engine.qemu.inline_caches`), and those for what the table of jumps does not have: these do
    not return to the block.
    """

    def __init__(self, state: memoryview[int]) -> None:
        self._state = state
        self.overdue = 0
        self.go_on = self.asked_block = 0
        self.served_hook = 0

    def place(self, code: int) -> None:
        """Put them behind the translated code; if there is no room, no block is ever changed."""
        address = _guard(code)
        if address is None or not _protect(address, mmap.PROT_READ | mmap.PROT_WRITE):
            self._state[Word.FREE] = 0
            return
        for place, before, function, after in (
            (0, _LOAD, self.overdue, _CALL_JUMP),
            (GO_ON, _LOAD, self.go_on, _JUMP),
            (SERVED_HOOK, _LOAD, self.served_hook, _JUMP),
            (ASKED_BLOCK, _ENV + _LOAD, self.asked_block, _CALL_JUMP),
        ):
            stub = before + function.to_bytes(8, "little") + after
            ctypes.memmove(address + place, stub, len(stub))
        # It is not writable, as before, so it still guards what is behind the buffer. The engine unmaps it with the
        # buffer.
        _protect(address, mmap.PROT_READ | mmap.PROT_EXEC)
        self._state[Word.OVERDUE], self._state[Word.LOWEST] = address, code


def _protect(address: int, access: int) -> bool:
    """Set the access to a page, and return whether the host has done it."""
    return not libc().mprotect(ctypes.c_void_p(address), mmap.PAGESIZE, access)


def _guard(code: int) -> int | None:
    """Return the address of the page behind the buffer of translated code; None if it is not found.

    QEMU maps one buffer of 1 GiB and protects its last page against reading and writing
    (qemu/tcg/tcg.c tcg_region_init()), so that page is there in every address space, and near
    enough.
    """
    try:
        areas = [line.split(maxsplit=2)[:2] for line in Path("/proc/self/maps").read_bytes().splitlines()]
    except OSError:
        return None
    for (place, _), (following, access) in pairwise(areas):
        start, end = (int(address, 16) for address in place.split(b"-"))
        if start <= code < end:
            found = following.startswith(place.split(b"-")[1] + b"-") and access == b"---p"
            return end if found else None
    return None
