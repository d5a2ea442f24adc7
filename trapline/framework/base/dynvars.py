"""Dynamic variables: thread-locals and elements of associative arrays, in chunks of one fixed size.

A variable takes a chunk of the CPU that stores it first; freed, its chunk waits on that CPU's dirty
list until the cleaner has made sure that no CPU uses it any more.  If a CPU has none left it takes
another's; if no CPU has one, the store is dropped, and counted by its cause.

Here the cleaner has no other CPU to wait for, so a chunk is rinsed and clean in one step, and
DYNRINSE drops cannot happen.

Source: FreeBSD dtrace.c dtrace_dynvar(), dtrace_dynvar_clean(), dtrace_dstate_init(),
dtrace_difo_chunksize(); the sizes are those of an LP64 kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from emu.support.immutable import immutable
from emu.support.plain import zeroed
from trapline.framework.base import dif
from trapline.framework.base.dif import USER_VARIABLE_BASE, Op
from trapline.framework.base.memory import Memory
from trapline.framework.base.program import Difo, DifVariable, Scope, TypeKind

CHUNK_SIZE: Final = 256
# Size of a string without a size of its own (dtrace_strsize_default), whatever the option strsize is.
STRING_SIZE: Final = 256
# sizeof (dtrace_dynhash_t)
HASH_ENTRY: Final = 64
# sizeof (dtrace_dynvar_t), with one key
_HEADER: Final = 48
# sizeof (dtrace_key_t)
_KEY: Final = 16
_WORD: Final = 8

# The tuple, the variable's number and, for thread-locals, the thread's key: numbers by value, bytes by reference.
Key = tuple[int | bytes, ...]


def align(size: int, alignment: int = _WORD) -> int:
    """Round up."""
    return -(-size // alignment) * alignment


def key_space(key: Key) -> int:
    """Return the size of the header and the key in a chunk: the data follow them."""
    return _HEADER + _KEY * (len(key) - 1) + sum(align(len(part)) for part in key if isinstance(part, bytes))


class State(IntEnum):
    """The reason why an allocation failed (DTRACE_DSTATE_*)."""

    CLEAN = 0
    EMPTY = 1
    DIRTY = 2


@dataclass(slots=True)
class Pool:
    """The chunks of one CPU, by their offsets; the last of a list is the next to be taken."""

    free: list[int] = field(default_factory=list)
    dirty: list[int] = field(default_factory=list)
    clean: list[int] = field(default_factory=list)
    drops: int = 0
    dirty_drops: int = 0


@immutable
class Stored:
    """A variable: its chunk, and the offset of its data in the space."""

    chunk: int
    data: int


class DynamicVariables:
    """The space of one consumer's dynamic variables (dtrace_dstate_t)."""

    def __init__(self, memory: Memory, size: int, chunk_size: int, cpus: int) -> None:
        size = max(size, chunk_size + HASH_ENTRY)
        self.memory = memory
        self.chunk_size = chunk_size
        self.region = memory.allocate(zeroed(size), self._writable)
        self.first = 0
        """Offset of the first chunk."""
        self.variables: dict[Key, Stored] = {}
        self._by_chunk: dict[int, Stored] = {}
        self.pools = [Pool() for _ in range(cpus)]
        self.state = State.CLEAN
        self._share_out(size)

    def _share_out(self, size: int) -> None:
        """Give each CPU its chunks; if there are too few for all, the first CPU gets them all."""
        entries = size // (self.chunk_size + HASH_ENTRY)
        if entries != 1 and entries & 1:
            entries -= 1
        self.first = start = entries * HASH_ENTRY
        per_cpu = (size - start) // len(self.pools) // self.chunk_size * self.chunk_size
        for pool in self.pools:
            last = per_cpu == 0 or pool is self.pools[-1]
            limit = size if last else start + per_cpu
            chunk = start
            pool.free.append(chunk)
            while chunk + 2 * self.chunk_size < limit:
                chunk += self.chunk_size
                pool.free.append(chunk)
            pool.free.reverse()
            if last:
                return
            start = limit

    def _writable(self, offset: int, size: int) -> bool:
        """Return whether a range is the data of one variable."""
        chunk = self.first + (offset - self.first) // self.chunk_size * self.chunk_size
        variable = self._by_chunk.get(chunk)
        return variable is not None and variable.data <= offset and offset + size <= chunk + self.chunk_size

    @property
    def drops(self) -> int:
        """Stores dropped because the space was full."""
        return sum(pool.drops for pool in self.pools)

    @property
    def dirty_drops(self) -> int:
        """Stores dropped while freed chunks waited to be cleaned."""
        return sum(pool.dirty_drops for pool in self.pools)

    def find(self, key: Key) -> int:
        """Return the address of a variable's data, 0 if it does not exist."""
        variable = self.variables.get(key)
        return 0 if variable is None else self.region.base + variable.data

    def find_or_create(self, key: Key, size: int, cpu: int) -> int:
        """Return the address of a variable's data, creating it.

        0 if there is no room, which has been counted.
        """
        variable = self.variables.get(key)
        if variable is None:
            header = key_space(key)
            if header + size > self.chunk_size:
                self.pools[cpu].drops += 1
                return 0
            chunk = self._take(cpu)
            if chunk is None:
                return 0
            variable = Stored(chunk, chunk + header)
            self.variables[key] = self._by_chunk[chunk] = variable
        return self.region.base + variable.data

    def _take(self, cpu: int) -> int | None:
        own = self.pools[cpu]
        places = self.pools[cpu:] + self.pools[:cpu] if self.state is State.CLEAN else [own]
        for pool in places:
            if not pool.free:
                pool.free, pool.clean = pool.clean, pool.free
            if pool.free:
                return pool.free.pop()
        if self.state is State.CLEAN:
            self.state = State.DIRTY if any(pool.dirty for pool in self.pools) else State.EMPTY
        if self.state is State.DIRTY:
            own.dirty_drops += 1
        else:
            own.drops += 1
        return None

    def remove(self, key: Key, cpu: int) -> bool:
        """Free a variable; return whether it existed, so that there is something to clean."""
        variable = self.variables.pop(key, None)
        if variable is None:
            return False
        del self._by_chunk[variable.chunk]
        self.pools[cpu].dirty.append(variable.chunk)
        return True

    def clean(self) -> None:
        """Make freed chunks available again."""
        for pool in self.pools:
            if pool.dirty:
                pool.clean += pool.dirty
                pool.dirty = []
                self.state = State.CLEAN

    def release(self) -> None:
        """Release the space."""
        self.memory.release(self.region)


def chunk_size_for(difo: Difo) -> int:
    """Return the chunk size that the stores of a DIF object need (dtrace_difo_chunksize)."""
    needed = 0
    tuple_sizes: list[int] = []
    known = 0
    """The constant that the instruction before has loaded, 0 if it did not."""
    loaded = 0
    """The register it went to."""
    for instruction in difo.code:
        op = dif.opcode(instruction)
        sizes: list[int] | None = None
        scope = Scope.THREAD
        if op == Op.SETX:
            known, loaded = difo.integers[dif.index(instruction)], dif.rd(instruction)
            continue
        if op == Op.STTS:
            sizes = [0, 0]
        elif op == Op.STGAA:
            sizes, scope = [*tuple_sizes, 0], Scope.GLOBAL
        elif op == Op.STTAA:
            sizes = [*tuple_sizes, 0, 0]
        elif op == Op.PUSHTR:
            if (loaded == 0 or known == 0) and dif.r1(instruction) == TypeKind.STRING:
                tuple_sizes.append(STRING_SIZE)
            elif loaded == 0:
                return needed
            else:
                tuple_sizes.append(known)
        elif op == Op.PUSHTV:
            tuple_sizes.append(0)
        elif op == Op.FLUSHTS:
            tuple_sizes.clear()
        elif op == Op.POPTS:
            del tuple_sizes[-1:]
        known = loaded = 0
        if len(tuple_sizes) > dif.TUPLE_REGISTERS:
            return needed
        if sizes is not None:
            variable = find_variable(difo, dif.index(instruction), scope)
            if variable is None:
                return needed
            header = _HEADER + _KEY * (len(sizes) - 1) + sum(map(align, sizes))
            needed = max(needed, align(header + variable_size(variable)))
    return needed


def find_variable(difo: Difo, number: int, scope: Scope) -> DifVariable | None:
    """Return a variable of a DIF object's table."""
    for variable in difo.variables:
        if variable.id == number and variable.scope == scope:
            return variable
    return None


def variable_size(variable: DifVariable) -> int:
    """Return the size of a variable; a string without a size of its own has 256 bytes."""
    if variable.type.size == 0 and variable.type.kind == TypeKind.STRING:
        return STRING_SIZE
    return variable.type.size


def slot(number: int) -> int:
    """Return the index of a user variable."""
    return number - USER_VARIABLE_BASE
