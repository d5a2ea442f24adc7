"""The symbols of a kernel, read from its image: no System.map or debugging information is needed.

A kernel built with CONFIG_KALLSYMS has these tables in its read-only data, in this order since 6.2
(each begins at a multiple of 8):

| table | content |
| --- | --- |
| num_syms | the number of symbols, 32 bits |
| names | each name: its length (one byte, or two from 128 on), then that many tokens |
| markers | the start of every 256th name, 32-bit numbers |
| token_table | 256 strings, one for each token; the first letter of a name is its type |
| token_index | the start of each of these strings, 16-bit numbers |
| offsets | each symbol's offset, 32-bit numbers |
| relative_base | the base of the offsets |

With per-CPU variables at absolute addresses (x86-64) a negative offset is counted in the other
direction.  The tables have no names in the image, so they are found by their content: the tokens of
the digits are consecutive, and every table is used to check the one before it.

Source: Linux 6.12 scripts/kallsyms.c (write_src), kernel/kallsyms.c.
"""

from __future__ import annotations

import re
import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from functools import cached_property
from operator import itemgetter
from typing import Final, NamedTuple

from emu.guest.linux_kernel.errors import KernelFileError
from emu.guest.linux_kernel.image import KernelImage
from emu.support import disk_cache

_TOKENS: Final = 256
_DIGITS: Final = b"\0".join(b"%d" % digit for digit in range(10)) + b"\0"
_FIRST_DIGIT: Final = ord("0")
_NAMES_PER_MARKER: Final = 256
_ALIGNMENT: Final = 8
# The largest size in bytes of the names of 256 symbols, with one byte per token.
_LONGEST_STRETCH: Final = 256 * 512
# The largest gap before a table, because of alignment.
_SLACK: Final = 8
_LONG: Final = 0x80
# The highest 17 bits of a kernel's addresses.
_KERNEL_TOP: Final = 0x1FFFF
_CACHE_VERSION: Final = b"1"


class Symbol(NamedTuple):
    """A symbol: `size` is the distance to the next higher address of a symbol."""

    name: str
    value: int
    size: int
    type: str
    """The letter of nm(1): t and T are code."""


class Symbols:
    """The symbols of a kernel, by address and by name."""

    def __init__(self, entries: list[tuple[int, str]]) -> None:
        """Take the addresses, and the types and names."""
        entries.sort(key=lambda entry: entry[0])
        self._addresses = array("Q", (address for address, _ in entries))
        self._names = [name for _, name in entries]

    def __len__(self) -> int:
        return len(self._names)

    @cached_property
    def _by_name(self) -> Mapping[str, int]:
        """Index of a name's first symbol."""
        # A kernel has 200,000 symbols, so no Python code is executed for each.
        names = map(itemgetter(slice(1, None)), reversed(self._names))
        return dict(zip(names, range(len(self._names) - 1, -1, -1), strict=True))

    def _at(self, index: int) -> Symbol:
        name, value = self._names[index], self._addresses[index]
        following = bisect_right(self._addresses, value)
        end = self._addresses[following] if following < len(self._addresses) else value
        return Symbol(name[1:], value, end - value, name[0])

    def get(self, name: str) -> Symbol | None:
        """Return the symbol of a name, the lowest if there are several; None: there is none."""
        index = self._by_name.get(name)
        return None if index is None else self._at(index)

    def address(self, name: str) -> int:
        """Return a symbol's address.  Raises KeyError."""
        return self._addresses[self._by_name[name]]

    def all_of(self, name: str) -> list[Symbol]:
        """Return every symbol of a name."""
        first = self._by_name.get(name)
        if first is None:
            return []
        return [self._at(index) for index in range(first, len(self._names)) if self._names[index][1:] == name]

    def holding(self, address: int) -> Symbol | None:
        """Return the symbol that contains an address; of several at one address the first."""
        index = bisect_right(self._addresses, address) - 1
        return None if index < 0 else self._at(bisect_left(self._addresses, self._addresses[index]))

    def starting(self, prefix: str) -> Iterator[Symbol]:
        """Yield the symbols whose names begin with a prefix, by address."""
        for index in [index for index, name in enumerate(self._names) if name.startswith(prefix, 1)]:
            yield self._at(index)

    def between(self, low: int, high: int) -> Iterator[Symbol]:
        """Yield the symbols in [low, high) by address."""
        for index in range(bisect_left(self._addresses, low), bisect_left(self._addresses, high)):
            yield self._at(index)

    def dump(self) -> bytes:
        """Return all symbols in the form for a cache."""
        return struct.pack("<Q", len(self._addresses)) + self._addresses.tobytes() + "\n".join(self._names).encode()

    @classmethod
    def undump(cls, data: bytes) -> Symbols:
        """Return symbols from the result of `dump`."""
        (count,) = struct.unpack_from("<Q", data)
        symbols = cls([])
        symbols._addresses = array("Q", data[8 : 8 + 8 * count])
        symbols._names = data[8 + 8 * count :].decode().split("\n")
        return symbols


def symbols_of(image: KernelImage) -> Symbols:
    """Return the symbols of a kernel, from the disk if they were read before.

    Raises `KernelFileError` if it has no kallsyms.
    """

    def made() -> bytes:
        return Symbols(read_kallsyms(image.data, f"Linux {image.release}")).dump()

    return Symbols.undump(disk_cache.cached("kallsyms", _CACHE_VERSION + image.digest.encode(), made))


def read_kallsyms(data: bytes, name: str) -> list[tuple[int, str]]:
    """Return address, and type and name in one string, of each symbol in a kernel's image.

    `name` is its name in messages.  Raises `KernelFileError`.
    """
    for found in re.finditer(re.escape(_DIGITS), data):
        tables = _token_tables(data, found.start())
        if tables is None:
            continue
        symbols = _symbols(data, *tables)
        if symbols is not None:
            return symbols
    raise KernelFileError(f"{name}: it has no kallsyms; use a kernel with CONFIG_KALLSYMS=y, as distributions build it")


def _token_tables(data: bytes, digits: int) -> tuple[int, list[bytes], int] | None:
    """Return where the token table begins, the tokens, and the end of their index; None: not here."""
    start = digits
    for _ in range(_FIRST_DIGIT):  # these tokens come before that of "0"
        before = data.rfind(b"\0", 0, start - 1)
        if before < 0:
            return None
        start = before + 1
    tokens, at = [], start
    for _ in range(_TOKENS):
        end = data.find(b"\0", at)
        if end < 0:
            return None
        tokens.append(data[at:end])
        at = end + 1
    index = b"".join(struct.pack("<H", position) for position in _starts(tokens))
    for position in range(at, at + _SLACK + 1):
        if data[position : position + len(index)] == index:
            return start, tokens, position + len(index)
    return None


def _starts(tokens: list[bytes]) -> Iterator[int]:
    at = 0
    for token in tokens:
        yield at
        at += len(token) + 1


def _symbols(data: bytes, token_table: int, tokens: list[bytes], index_end: int) -> list[tuple[int, str]] | None:
    offsets = index_end + -index_end % _ALIGNMENT
    for base_at in range(offsets, len(data) - 8, _ALIGNMENT):
        (base,) = struct.unpack_from("<Q", data, base_at)
        if base >> 47 != _KERNEL_TOP or base & 0xFFF:
            continue
        most = (base_at - offsets) // 4
        for count in (most, most - 1):
            names = _names(data, token_table, tokens, count) if count > 0 else None
            if names is not None:
                distances = struct.unpack_from(f"<{count}i", data, offsets)
                return list(zip(_addresses(distances, base), names, strict=True))
        if most > 1 << 22:  # no kernel has that many symbols
            return None
    return None


def _addresses(distances: tuple[int, ...], base: int) -> Iterator[int]:
    """Yield addresses (kallsyms_sym_address)."""
    both_ways = 2 * sum(distance < 0 for distance in distances) > len(distances)
    for distance in distances:
        if not both_ways:
            yield base + (distance & 0xFFFF_FFFF)
        else:
            yield base - 1 - distance if distance < 0 else distance


def _names(data: bytes, token_table: int, tokens: list[bytes], count: int) -> list[str] | None:
    """Return the names, if the markers and the number of symbols are at the right offsets."""
    markers_size = -(-count // _NAMES_PER_MARKER) * 4
    number = struct.pack("<I", count)
    for markers in range((token_table - markers_size) & ~3, token_table - markers_size - _SLACK, -4):
        first, last = (struct.unpack_from("<I", data, at)[0] for at in (markers, markers + markers_size - 4))
        if first != 0 or (count > _NAMES_PER_MARKER) is not (last > 0) or last > markers:
            continue
        # The names end directly before the markers, and the last part of them is not longer than this.
        low = markers - last - _LONGEST_STRETCH
        at = markers - last
        while (at := data.rfind(number, max(0, low), at)) >= 0:
            for start in (at + 4, at + 8):
                names = _expand(data, start, markers, tokens, count)
                if names is not None:
                    return names
    return None


def _expand(data: bytes, at: int, end: int, tokens: list[bytes], count: int) -> list[str] | None:
    """Return `count` names that begin at `at` and end right before `end`; None: they do not."""
    names = []
    for _ in range(count):
        length = data[at]
        at += 1
        if length & _LONG:
            length = length & ~_LONG | data[at] << 7
            at += 1
        if not length or at + length > end:
            return None
        names.append(b"".join([tokens[token] for token in data[at : at + length]]).decode("utf-8", "replace"))
        at += length
    return names if end - at < _SLACK else None
