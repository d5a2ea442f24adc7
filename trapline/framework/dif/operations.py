"""DIF's operations beyond arithmetic: memory, scratch space, strings, variables.

They define what machine code does, too, which asks them for what it cannot do itself.  Faults are
flags in the CPU's core; after a fault the returned value is not used.

Source: FreeBSD dtrace.c dtrace_dif_emulate(), dtrace_canload(), dtrace_canstore(), dtrace_vcopy().
"""

from __future__ import annotations

from typing import Final

from emu.displaced.cpu_core import CoreWord
from emu.guest.base import Thread
from emu.support.words import WORD_MASK
from trapline.framework.base.context import Context
from trapline.framework.base.dynvars import STRING_SIZE, Key, slot, variable_size
from trapline.framework.base.faults import BADADDR, BADALIGN, DROP, FAULT, ILLOP, KPRIV, NOSCRATCH
from trapline.framework.base.program import BY_REFERENCE, DifVariable, Scope, TypeKind
from trapline.framework.base.variables import Statics, Variables
from trapline.framework.base.world import World

# The tuple stack: (value, size), the size being 0 for a value and the number of bytes for a reference.
Stack = list[tuple[int, int]]

_FLAGS: Final = int(CoreWord.FLAGS)
# Largest reference that can be pushed.
SIZE_MAX = (1 << 63) - 1
# The key of a thread is its number plus the offset, cut by the mask.
THREAD_KEY_OFFSET = 0xFFFF
THREAD_KEY_BITS = (1 << 61) - 1


class Operations:
    """The operations of one consumer's DIF."""

    def __init__(self, world: World, variables: Variables, *, kernel_access: bool) -> None:
        self.world = world
        self.core = world.core
        self._core_words = world.core.words
        self.memory = world.memory
        self.variables = variables
        self.kernel_access = kernel_access
        """Whether the consumer may read all of kernel memory; on FreeBSD every consumer may."""
        self.string_size = STRING_SIZE
        """Option strsize."""

    # The current thread

    def thread(self, ctx: Context) -> Thread:
        """Return the current thread; the guest is called at most once per enabling."""
        thread = ctx.thread
        if thread is None:
            thread = ctx.thread = self.world.guest.thread()
        return thread

    # Memory

    def can_load(self, address: int, size: int) -> bool:
        """Return whether the consumer may read there; if not, that is a fault (dtrace_canload)."""
        if self.kernel_access or self.memory.is_own(address, size):
            return True
        self.memory.fault(KPRIV, address)
        return False

    def load_checked(self, address: int, size: int) -> int | None:
        """Load after a check of access; None leaves the destination as it is (RLDxx)."""
        return self.memory.load(address, size) if self.can_load(address, size) else None

    def can_store(self, ctx: Context, address: int, size: int) -> bool:
        """Return whether DIF may write there; if not, that is a fault."""
        if self.in_scratch(ctx, address, size) or self.memory.can_store(address, size):
            return True
        self.memory.fault(BADADDR, address)
        return False

    def store(self, ctx: Context, address: int, size: int, value: int) -> None:
        """Store a number of 1, 2, 4 or 8 bytes (STB ... STX)."""
        if not self.can_store(ctx, address, size):
            return
        if address & (size - 1):
            self.memory.fault(BADALIGN, address)
            return
        self.memory.write(address, (value & ((1 << 8 * size) - 1)).to_bytes(size, "little"))

    def copy(self, ctx: Context, source: int, size: int, destination: int) -> None:
        """Copy bytes to where DIF may write (COPYS)."""
        if self.can_store(ctx, destination, size) and self.can_load(source, size):
            self.memory.write(destination, self.memory.read(source, size))

    # Scratch space

    def reserve(self, ctx: Context, size: int, alignment: int = 1) -> int | None:
        """Take scratch space; None, a fault, if there is not enough."""
        address = ctx.scratch_ptr + (-ctx.scratch_ptr & (alignment - 1))
        if address + size > ctx.scratch_end:
            self.core.flags |= NOSCRATCH
            return None
        ctx.scratch_ptr = address + size
        return address

    def allocate(self, ctx: Context, size: int) -> int:
        """Take zeroed scratch space (ALLOCS)."""
        address = self.reserve(ctx, size, 8)
        if address is None:
            return 0
        self.memory.write(address, bytes(size))
        return address

    def in_scratch(self, ctx: Context, address: int, size: int) -> bool:
        """Return whether a range is scratch space that has been handed out (dtrace_inscratch)."""
        return ctx.scratch_base <= address and address + size <= ctx.scratch_ptr

    # Strings

    def string(self, address: int) -> bytes:
        """Read a string, at most strsize bytes of it; nothing if access is refused."""
        text = self.memory.string(address, self.string_size)
        return text if self.can_load(address, min(len(text) + 1, self.string_size)) else b""

    def compare(self, first: int, second: int) -> int:
        """Compare strings by their bytes: negative, 0 or positive.

        NULL is equal to the empty string (SCMP).
        """
        one = self.string(first) if first else b""
        two = self.string(second) if second else b""
        if not first or not second:
            one, two = one[:1], two[:1]
        return (one > two) - (one < two)

    # The tuple stack

    def push_reference(self, stack: Stack, kind: int, size: int, value: int) -> None:
        """Push a reference (PUSHTR)."""
        if kind == TypeKind.STRING:
            size = len(self.memory.string(value, size or STRING_SIZE)) + 1
        if size > SIZE_MAX:
            self.core.flags |= ILLOP
            return
        stack.append((value, size))

    # Variables

    def store_static(self, statics: Statics, index: int, copy: int, value: int) -> None:
        """Store a global or clause-local (STGS, STLS)."""
        reference = statics.references.get(index)
        if reference is None:
            statics.values[copy][index] = value
        elif value == 0:
            reference.set_null(copy)
        else:
            self._copy_in(value, reference.variable, reference.set_present(copy))

    def _copy_in(self, value: int, variable: DifVariable, destination: int) -> None:
        """Copy a variable's new data: a string up to its NUL, others whole (dtrace_vcopy)."""
        size = variable_size(variable)
        if variable.type.kind == TypeKind.STRING:
            text = self.memory.string(value, size)
            if not self.can_load(value, min(len(text) + 1, size)):
                return
            data = (text + b"\0")[:size]
        elif self.can_load(value, size):
            data = self.memory.read(value, size)
        else:
            return
        if not self._core_words[_FLAGS] & FAULT:
            self.memory.write(destination, data)

    def key(self, ctx: Context, stack: Stack, number: int, scope: Scope) -> Key | None:
        """Return the key of an element of an associative array.

        None, a fault, if part of it cannot be read.

        The tuple's entries, the variable, and for thread-local arrays the thread; the stack stays
        as it is.
        """
        parts: list[int | bytes] = []
        for value, size in stack:
            if not size:
                parts.append(value)
                continue
            if not self.can_load(value, size):
                return None
            parts.append(self.memory.read(value, size))
        if self._core_words[_FLAGS] & FAULT:
            return None
        parts.append(slot(number))
        if scope == Scope.THREAD:
            parts.append(self._thread_key(ctx))
        return tuple(parts)

    def _thread_key(self, ctx: Context) -> int:
        """Return the key that distinguishes threads (DTRACE_TLS_THRKEY, at interrupt level 0)."""
        return (self.thread(ctx).tid + THREAD_KEY_OFFSET) & THREAD_KEY_BITS

    def load_dynamic(self, ctx: Context, stack: Stack, number: int, scope: Scope) -> int:
        """Load a thread-local or an element: its value or address, else 0 (LDTS, LDGAA, LDTAA)."""
        key = self.key(ctx, stack, number, scope)
        address = 0 if key is None else self.variables.dynamic.find(key)
        if address and not self.variables.declared[scope, number].type.flags & BY_REFERENCE:
            return int.from_bytes(self.memory.read(address, 8), "little")
        return address

    def store_dynamic(self, ctx: Context, stack: Stack, number: int, scope: Scope, value: int) -> bool:
        """Store a thread-local or an element; 0 frees it (STTS, STGAA, STTAA).

        Return whether something was freed.
        """
        key = self.key(ctx, stack, number, scope)
        if key is None:
            return False
        if value == 0:
            return self.variables.dynamic.remove(key, ctx.cpu)
        variable = self.variables.declared[scope, number]
        address = self.variables.dynamic.find_or_create(key, max(variable_size(variable), 8), ctx.cpu)
        if address == 0:
            self.core.flags |= DROP
        elif variable.type.flags & BY_REFERENCE:
            self._copy_in(value, variable, address)
        else:
            self.memory.write(address, (value & WORD_MASK).to_bytes(8, "little"))
        return False
