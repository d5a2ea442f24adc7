"""The subroutines of D: a table from number to function (dtrace_dif_subr).

A subroutine gets the tuple stack; a result of None leaves the destination register unchanged.  A
subroutine that needs a kernel's structures is an illegal operation if the guest has none; the
STREAMS and device subroutines of illumos are accepted on FreeBSD and do nothing.
"""

from __future__ import annotations

from typing import Final

from trapline.framework.base.context import Context
from trapline.framework.base.dif import Subr
from trapline.framework.base.faults import BADADDR, ILLOP
from trapline.framework.buffers.speculation import Speculations
from trapline.framework.dif.locks import QUESTIONS, asks
from trapline.framework.dif.operations import Operations, Stack
from trapline.framework.dif.random import Xoroshiro
from trapline.framework.dif.text_subroutines import Subroutine, TextSubroutines, arg

MEMSTR_MAX: Final = 4096
_COPY_PIECE: Final = 4096

# Accepted, and without any effect (FreeBSD).
NOTHING: Final = frozenset({Subr.MSGDSIZE, Subr.MSGSIZE, Subr.GETMAJOR, Subr.GETMINOR, Subr.DDI_PATHNAME})


class Subroutines:
    """All subroutines, bound to one consumer's operations."""

    def __init__(self, operations: Operations, speculations: Speculations) -> None:
        self._operations = operations
        self._memory = operations.memory
        self.random = [Xoroshiro(cpu) for cpu in range(operations.world.cpus)]
        """The generators of rand(), one for each CPU."""
        self.table: dict[int, Subroutine] = {
            Subr.RAND: lambda ctx, _stack: self.random[ctx.cpu].next(),
            Subr.COPYIN: self._copyin,
            Subr.COPYINSTR: self._copyinstr,
            Subr.SPECULATION: lambda _ctx, _stack: speculations.create(),
            Subr.PROGENYOF: self._progenyof,
            Subr.COPYOUT: self._copyout,
            Subr.COPYOUTSTR: self._copyoutstr,
            Subr.ALLOCA: lambda ctx, stack: operations.reserve(ctx, arg(stack, 0), 8) or 0,
            Subr.BCOPY: self._bcopy,
            Subr.COPYINTO: self._copyinto,
            Subr.MEMREF: self._memref,
            Subr.MEMSTR: self._memstr,
            Subr.GETF: self._getf,
        }
        for size, numbers in (
            (2, (Subr.HTONS, Subr.NTOHS)),
            (4, (Subr.HTONL, Subr.NTOHL)),
            (8, (Subr.HTONLL, Subr.NTOHLL)),
        ):
            for number in numbers:
                self.table[number] = swapper(size)
        self.table |= TextSubroutines(operations).table
        for asked, question in QUESTIONS.items():
            self.table[asked] = asks(question, operations)
        for number in NOTHING:
            self.table[number] = lambda _ctx, _stack: None

    # User memory

    def _copyin(self, ctx: Context, stack: Stack) -> int:
        size = arg(stack, 1)
        address = self._operations.reserve(ctx, size, 8)
        if address is None:
            return 0
        self._memory.write(address, self._memory.read_user(arg(stack, 0), size))
        return address

    def _copyinto(self, ctx: Context, stack: Stack) -> None:
        source, size, destination = arg(stack, 0), arg(stack, 1), arg(stack, 2)
        if not self._operations.in_scratch(ctx, destination, size):
            self._memory.fault(BADADDR, destination)
            return
        self._memory.write(destination, self._memory.read_user(source, size))

    def _copyinstr(self, ctx: Context, stack: Stack) -> int:
        size = self._operations.string_size
        if len(stack) > 1 and arg(stack, 1) < size:
            size = arg(stack, 1) + 1
        address = self._operations.reserve(ctx, size)
        if address is None:
            return 0
        text = self._memory.user_string(arg(stack, 0), size)
        self._memory.write(address, text[: size - 1] + b"\0")
        return address

    def _copyout(self, _ctx: Context, stack: Stack) -> None:
        source, destination, size = arg(stack, 0), arg(stack, 1), arg(stack, 2)
        flags = self._operations.core.flags
        while size and self._operations.can_load(source, size):
            piece = min(size, _COPY_PIECE)
            data = self._memory.read(source, piece)
            self._memory.write_user(destination, data)
            if self._operations.core.flags != flags:
                return
            source, destination, size = source + piece, destination + piece, size - piece

    def _copyoutstr(self, _ctx: Context, stack: Stack) -> None:
        source, destination, size = arg(stack, 0), arg(stack, 1), arg(stack, 2)
        text = self._memory.string(source, size)
        if self._operations.can_load(source, min(len(text) + 1, size)):
            self._memory.write_user(destination, (text + b"\0")[:size])

    # Kernel memory

    def _bcopy(self, ctx: Context, stack: Stack) -> None:
        source, destination, size = arg(stack, 0), arg(stack, 1), arg(stack, 2)
        if not self._operations.in_scratch(ctx, destination, size):
            self._memory.fault(BADADDR, destination)
        elif self._operations.can_load(source, size):
            self._memory.write(destination, self._memory.read(source, size))

    def _memref(self, ctx: Context, stack: Stack) -> int:
        address = self._operations.reserve(ctx, 16, 8)
        if address is None:
            return 0
        self._memory.write(address, arg(stack, 0).to_bytes(8, "little") + arg(stack, 1).to_bytes(8, "little"))
        return address

    def _memstr(self, ctx: Context, stack: Stack) -> int:
        """Make a string from memory, with its NULs replaced."""
        source, replacement, size = arg(stack, 0), arg(stack, 1) & 0xFF, arg(stack, 2)
        if size == 0 or not self._operations.can_load(source, size - 1):
            return 0
        if size > MEMSTR_MAX:
            self._operations.core.flags |= ILLOP
            return 0
        address = self._operations.reserve(ctx, size)
        if address is None:
            return 0
        data = self._memory.read(source, size - 1).replace(b"\0", bytes([replacement]))
        self._memory.write(address, data + b"\0")
        return address

    # Processes

    def _progenyof(self, ctx: Context, stack: Stack) -> int:
        """Return whether the current process is the given one, or a descendant of it."""
        wanted = arg(stack, 0) & 0xFFFF_FFFF
        thread = self._operations.thread(ctx)
        parent = self._operations.world.abilities.parent
        process: int | None = thread.pid
        seen: set[int] = set()
        while process is not None and process not in seen:
            if process == wanted:
                return 1
            seen.add(process)
            process = thread.ppid if process == thread.pid else parent(process) if parent is not None else None
        return 0

    def _getf(self, _ctx: Context, stack: Stack) -> int:
        """Return the address of an open file of the current process; NULL: it has none."""
        open_file = self._operations.world.abilities.open_file
        if open_file is None:
            self._operations.core.flags |= ILLOP
            return 0
        return open_file(arg(stack, 0) & 0xFFFF_FFFF)


def swapper(size: int) -> Subroutine:
    """Make a subroutine that swaps the bytes of a number: all supported ISAs are little-endian."""
    mask = (1 << 8 * size) - 1

    def subroutine(_ctx: Context, stack: Stack) -> int:
        return int.from_bytes((arg(stack, 0) & mask).to_bytes(size, "little"), "big")

    return subroutine
