"""Dynamic variables in machine code: found by their keys, made, freed.

The space is laid out as `trapline.framework.base.dynvars` accounts for it:

    hash chains   one word of each `HASH_ENTRY` bytes: the first chunk
    chunks        next chunk of the chain or list, hash, size of the key, offset of the data (or 0);
                  the key: its parts as pairs of words, value and size, then what is referred to;
                  the data

A pool's chunks are in lists: taken from the front, and put there.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from emu.native.builder import Function, Module
from emu.native.link import Linked
from emu.native.operations import Value, Word
from emu.support.plain import address_of, words
from trapline.framework.base.blocks import DynamicWord, PoolWord
from trapline.framework.base.dynvars import HASH_ENTRY, DynamicVariables, Key, Pool, State, align
from trapline.framework.native.dif.hash import bucket, hash_function

_WORD: Final = 8
NEXT, HASH, KEY_SIZE, DATA = 0, 8, 16, 24
HEADER: Final = 32
_CHAIN_SHIFT: Final = HASH_ENTRY.bit_length() - 1
_POOL_SIZE: Final = len(PoolWord) * _WORD
_POOL_SHIFT: Final = _POOL_SIZE.bit_length() - 1
assert 1 << _CHAIN_SHIFT == HASH_ENTRY
assert 1 << _POOL_SHIFT == _POOL_SIZE
_PART: Final = struct.Struct("<QQ")
_U64: Final = struct.Struct("<Q")
_CALLS: Final = {
    "find": ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_uint64),
    "store": ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_char_p, *(3 * (ctypes.c_uint64,))),
    "remove": ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_char_p, *(2 * (ctypes.c_uint64,))),
    "enter": ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_char_p, *(2 * (ctypes.c_uint64,))),
}


def key_bytes(key: Key) -> bytes:
    """Return a key as a chunk has it."""
    parts, referred = [], []
    for part in key:
        if isinstance(part, bytes):
            parts.append(_PART.pack(0, len(part)))
            referred.append(part.ljust(align(len(part)), b"\0"))
        else:
            parts.append(_PART.pack(part, 0))
    return b"".join(parts + referred)


class _Writer:
    """Writes the functions of the library."""

    def __init__(self) -> None:
        self.module = Module()
        self._hash = hash_function(self.module)
        self._chain = self._write_chain()
        self._take = self._write_take()
        self._link = self._write_link()
        self._write_find()
        self._write_store()
        self._write_remove()
        self._write_enter()

    def _get(self, f: Function, word: DynamicWord) -> Value:
        """Return a word of the block, which is every function's first parameter."""
        return f.load(f.parameters[0], _WORD * word)

    def _write_chain(self) -> Function:
        """`u64 chain(block, hash)`: the address of a chain's head."""
        f = self.module.function("chain", 2, local=True)
        _block, hashed = f.parameters
        number = bucket(f, hashed, self._get(f, DynamicWord.CHAINS))
        f.ret(f.add(self._get(f, DynamicWord.DATA), f.shl(number, _CHAIN_SHIFT)))
        return f

    def _search(self, f: Function, hashed: Value) -> tuple[Value, Value]:
        """Look for a key in its chain: where its chunk's offset is, and the offset, which may be 0."""
        block, key, size = f.parameters[:3]
        data = self._get(f, DynamicWord.DATA)
        place = f.variable(f.call(self._chain, block, hashed))
        found = f.label()
        with f.loop() as loop:
            offset = f.load(place.get())
            loop.leave_if(f.eq(offset, 0))
            chunk = f.add(data, offset)
            other = f.either(f.ne(f.load(chunk, HASH), hashed), f.ne(f.load(chunk, KEY_SIZE), size))
            with f.when(f.fails(other)):
                f.branch_to(f.same(f.add(chunk, HEADER), key, size), found)
            place.set(f.add(chunk, NEXT))
        f.at(found)
        return place.get(), f.load(place.get())

    def _data_of(self, f: Function, offset: Value) -> Value:
        return f.load(f.add(self._get(f, DynamicWord.DATA), offset), DATA)

    def _write_find(self) -> None:
        """`u64 find(block, key, size)`: the offset of a variable's data, 0 if there is none."""
        f = self.module.function("find", 3)
        _place, offset = self._search(f, f.call(self._hash, *f.parameters[1:3]))
        f.ret_if(f.eq(offset, 0))
        f.ret(self._data_of(f, offset))

    def _write_store(self) -> None:
        """`u64 store(block, key, size, data_size, cpu)`: as `find`, but makes it; 0: dropped."""
        f = self.module.function("store", 5)
        block, key, size, data_size, cpu = f.parameters
        hashed = f.call(self._hash, key, size)
        _place, offset = self._search(f, hashed)
        with f.when(f.ne(offset, 0), likely=True):
            f.ret(self._data_of(f, offset))
        needed = f.add(f.add(size, HEADER), data_size)
        with f.when(f.ugt(needed, self._get(f, DynamicWord.CHUNK)), likely=False):
            self._count(f, self._pool(f, cpu), PoolWord.DROPS)
            f.ret()
        chunk = f.call(self._take, block, cpu)
        f.ret_if(f.eq(chunk, 0))
        f.ret(f.call(self._link, block, key, size, hashed, chunk))

    def _write_enter(self) -> None:
        """`u64 enter(block, key, size, chunk)`: give a chunk to a variable that is not there yet."""
        f = self.module.function("enter", 4)
        block, key, size, chunk = f.parameters
        f.ret(f.call(self._link, block, key, size, f.call(self._hash, key, size), chunk))

    def _write_link(self) -> Function:
        """`u64 link(block, key, size, hash, chunk)`: put a chunk into its chain; where its data is."""
        f = self.module.function("link", 5, local=True)
        block, key, size, hashed, offset = f.parameters
        chunk = f.add(self._get(f, DynamicWord.DATA), offset)
        head = f.call(self._chain, block, hashed)
        data = f.add(f.add(offset, HEADER), size)
        f.store(chunk, f.load(head), NEXT)
        f.store(chunk, hashed, HASH)
        f.store(chunk, size, KEY_SIZE)
        f.store(chunk, data, DATA)
        f.copy(f.add(chunk, HEADER), key, size)
        f.store(head, offset)
        f.ret(data)
        return f

    def _write_remove(self) -> None:
        """`u64 remove(block, key, size, cpu)`: free a variable; whether there was one."""
        f = self.module.function("remove", 4)
        place, offset = self._search(f, f.call(self._hash, *f.parameters[1:3]))
        f.ret_if(f.eq(offset, 0))
        chunk = f.add(self._get(f, DynamicWord.DATA), offset)
        pool = self._pool(f, f.parameters[3])
        f.store(place, f.load(chunk, NEXT))
        f.store(chunk, 0, DATA)
        first = f.load(pool, _WORD * PoolWord.DIRTY)
        with f.when(f.eq(first, 0)):
            f.store(pool, offset, _WORD * PoolWord.LAST)
        f.store(chunk, first, NEXT)
        f.store(pool, offset, _WORD * PoolWord.DIRTY)
        f.ret(1)

    def _pool(self, f: Function, cpu: Word) -> Value:
        return f.add(self._get(f, DynamicWord.POOLS), f.shl(cpu, _POOL_SHIFT))

    def _count(self, f: Function, pool: Value, word: PoolWord) -> None:
        f.store(pool, f.add(f.load(pool, _WORD * word), 1), _WORD * word)

    def _write_take(self) -> Function:
        """`u64 take(block, cpu)`: a chunk of this CPU, else of another; 0: there is none, counted."""
        f = self.module.function("take", 2, local=True)
        block, cpu = f.parameters
        hopeful = f.eq(self._get(f, DynamicWord.STATE), State.CLEAN)
        cpus = self._get(f, DynamicWord.CPUS)
        asked, number, dirty = f.variable(0), f.variable(cpu), f.variable(0)
        tries = f.select(hopeful, cpus, 1)
        with f.loop() as loop:
            loop.leave_if(f.eq(asked.get(), tries))
            pool = self._pool(f, number.get())
            self._take_from(f, pool)
            dirty.set(f.or_(dirty.get(), f.load(pool, _WORD * PoolWord.DIRTY)))
            following = f.add(number.get(), 1)
            number.set(f.select(f.eq(following, cpus), 0, following))
            asked.set(f.add(asked.get(), 1))
        with f.when(hopeful):
            state = f.select(f.eq(dirty.get(), 0), State.EMPTY, State.DIRTY)
            f.store(block, state, _WORD * DynamicWord.STATE)
        own = self._pool(f, cpu)
        with f.when(f.eq(self._get(f, DynamicWord.STATE), State.DIRTY)):
            self._count(f, own, PoolWord.DIRTY_DROPS)
            f.ret()
        self._count(f, own, PoolWord.DROPS)
        f.ret()
        return f

    def _take_from(self, f: Function, pool: Value) -> None:
        """Return a chunk of a pool, if it has any: one never used, a free one, or else a clean one."""
        left = f.load(pool, _WORD * PoolWord.LEFT)
        with f.when(f.ne(left, 0)):
            fresh = f.load(pool, _WORD * PoolWord.FRESH)
            f.store(pool, f.add(fresh, self._get(f, DynamicWord.CHUNK)), _WORD * PoolWord.FRESH)
            f.store(pool, f.sub(left, 1), _WORD * PoolWord.LEFT)
            f.ret(fresh)
        with f.when(f.eq(f.load(pool, _WORD * PoolWord.FREE), 0)):
            f.store(pool, f.load(pool, _WORD * PoolWord.CLEAN), _WORD * PoolWord.FREE)
            f.store(pool, 0, _WORD * PoolWord.CLEAN)
        free = f.load(pool, _WORD * PoolWord.FREE)
        with f.when(f.ne(free, 0)):
            following = f.load(f.add(self._get(f, DynamicWord.DATA), free), NEXT)
            f.store(pool, following, _WORD * PoolWord.FREE)
            f.ret(free)


@cache
def library() -> Linked:
    """Return the functions `find`, `store`, `remove` and `enter`, which all consumers share."""
    return Linked(_Writer().module.compiled("dynamic-variables"))


@cache
def _callable(name: str) -> Any:
    return _CALLS[name](library().address(name))


class SharedDynamicVariables(DynamicVariables):
    """Dynamic variables that machine code works on; Python works on them by the same functions.

    They take over the space of others, with all that is stored there.
    """

    def __init__(self, old: DynamicVariables) -> None:
        self.memory, self.region = old.memory, old.region
        self.chunk_size, self.first = old.chunk_size, old.first
        self.region.writable = self._writable
        self.words = words(len(DynamicWord))
        """`DynamicWord`."""
        self.address = address_of(self.words)
        self._pool_words = words(len(PoolWord) * len(old.pools))
        self._key = words(self.chunk_size // _WORD)
        self.words[DynamicWord.DATA] = self.region.host
        self.words[DynamicWord.BASE] = self.region.base
        self.words[DynamicWord.CHUNK] = self.chunk_size
        self.words[DynamicWord.CHAINS] = self.first // HASH_ENTRY
        self.words[DynamicWord.STATE] = old.state
        self.words[DynamicWord.CPUS] = len(old.pools)
        self.words[DynamicWord.POOLS] = address_of(self._pool_words)
        self.words[DynamicWord.KEY] = address_of(self._key)
        self._find, self._store, self._remove = (_callable(name) for name in ("find", "store", "remove"))
        self._take_over(old)

    def _take_over(self, old: DynamicVariables) -> None:
        self.region.data[: self.first] = bytes(self.first)
        for cpu, pool in enumerate(old.pools):
            place = cpu * len(PoolWord)
            self._pool_words[place : place + len(PoolWord)] = self._pool(pool)
        enter = _callable("enter")
        for key, stored in old.variables.items():
            encoded = key_bytes(key)
            enter(self.address, encoded, len(encoded), stored.chunk)

    def _pool(self, pool: Pool) -> memoryview[int]:
        """Make lists of the chunks of a pool, and return its words."""
        values = words(len(PoolWord))
        if _is_run(pool.free, self.chunk_size):
            values[PoolWord.FRESH], values[PoolWord.LEFT] = pool.free[-1], len(pool.free)
        else:
            values[PoolWord.FREE] = self._list(pool.free)
        values[PoolWord.DIRTY] = self._list(pool.dirty)
        values[PoolWord.LAST] = pool.dirty[0] if pool.dirty else 0
        values[PoolWord.CLEAN] = self._list(pool.clean)
        values[PoolWord.DROPS], values[PoolWord.DIRTY_DROPS] = pool.drops, pool.dirty_drops
        return values

    def _list(self, chunks: Sequence[int]) -> int:
        """Chain chunks that are not in use, the last one first; return its offset."""
        following = 0
        for chunk in chunks:
            self.region.data[chunk : chunk + HEADER] = _U64.pack(following) + bytes(HEADER - _WORD)
            following = chunk
        return following

    def _writable(self, offset: int, size: int) -> bool:
        """Return whether a range is the data of one variable."""
        if offset < self.first:
            return False
        chunk = self.first + (offset - self.first) // self.chunk_size * self.chunk_size
        (data,) = _U64.unpack_from(self.region.data, chunk + DATA) if chunk + HEADER <= len(self.region.data) else (0,)
        return 0 < data <= offset and offset + size <= chunk + self.chunk_size

    def _sum(self, word: PoolWord) -> int:
        return sum(self._pool_words[word :: len(PoolWord)])

    @property
    def drops(self) -> int:
        """Stores dropped because the space was full."""
        return self._sum(PoolWord.DROPS)

    @property
    def dirty_drops(self) -> int:
        """Stores dropped while freed chunks waited to be cleaned."""
        return self._sum(PoolWord.DIRTY_DROPS)

    def find(self, key: Key) -> int:
        """Return the address of a variable's data, 0 if it does not exist."""
        encoded = key_bytes(key)
        offset: int = self._find(self.address, encoded, len(encoded))
        return self.region.base + offset if offset else 0

    def find_or_create(self, key: Key, size: int, cpu: int) -> int:
        """Return the address of a variable's data, creating it.

        0 if there is no room, which has been counted.
        """
        encoded = key_bytes(key)
        offset: int = self._store(self.address, encoded, len(encoded), size, cpu)
        return self.region.base + offset if offset else 0

    def remove(self, key: Key, cpu: int) -> bool:
        """Free a variable; return whether it existed, so that there is something to clean."""
        encoded = key_bytes(key)
        return bool(self._remove(self.address, encoded, len(encoded), cpu))

    def clean(self) -> None:
        """Make freed chunks available again: what is dirty comes before what is clean."""
        pools = self._pool_words
        for place in range(0, len(pools), len(PoolWord)):
            if pools[place + PoolWord.DIRTY]:
                _U64.pack_into(self.region.data, pools[place + PoolWord.LAST] + NEXT, pools[place + PoolWord.CLEAN])
                pools[place + PoolWord.CLEAN] = pools[place + PoolWord.DIRTY]
                pools[place + PoolWord.DIRTY] = 0
                self.words[DynamicWord.STATE] = State.CLEAN


def _is_run(chunks: Sequence[int], size: int) -> bool:
    """Return whether chunks lie behind each other, the last one first."""
    return bool(chunks) and list(chunks) == list(range(chunks[0], chunks[-1] - 1, -size))
