"""The subroutines of D that read strings, or make strings of something.

A result in scratch space takes as much room as the kernel reserves for it, however long it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.support.words import WORD_MASK
from trapline.framework.base.context import Context
from trapline.framework.base.dif import Subr
from trapline.framework.base.faults import ILLOP, NOSCRATCH
from trapline.framework.base.world import signed
from trapline.framework.dif import inet, jsonpath, strings
from trapline.framework.dif.operations import Operations, Stack

Subroutine = Callable[[Context, Stack], int | None]

IPV4_SPACE: Final = 16
IPV6_SPACE: Final = 46
_NUMBER_SPACE: Final = 65


def arg(stack: Stack, index: int) -> int:
    """Return the value of an entry, 0 if it was not pushed."""
    return stack[index][0] if index < len(stack) else 0


class TextSubroutines:
    """The subroutines on strings of one consumer; `table` has them by number."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._memory = operations.memory
        self.table: dict[int, Subroutine] = {
            Subr.STRLEN: lambda _ctx, stack: len(operations.string(arg(stack, 0))),
            Subr.STRJOIN: self._strjoin,
            Subr.LLTOSTR: self._lltostr,
            Subr.BASENAME: self._on_string(strings.basename),
            Subr.DIRNAME: self._on_string(strings.dirname),
            Subr.CLEANPATH: self._on_string(lambda text: strings.cleanpath(text, operations.string_size)),
            Subr.STRCHR: lambda _ctx, stack: self._place(stack, bytes.find),
            Subr.STRRCHR: lambda _ctx, stack: self._place(stack, bytes.rfind),
            Subr.STRSTR: self._strstr,
            Subr.STRTOK: self._strtok,
            Subr.SUBSTR: self._substr,
            Subr.INDEX: lambda _ctx, stack: self._index(stack, strings.index),
            Subr.RINDEX: lambda _ctx, stack: self._index(stack, strings.rindex),
            Subr.INET_NTOP: self._inet_ntop,
            Subr.INET_NTOA: lambda ctx, stack: self._ipv4(ctx, arg(stack, 0)),
            Subr.INET_NTOA6: lambda ctx, stack: self._ipv6(ctx, arg(stack, 0), mixed=False),
            Subr.TOUPPER: self._on_string(strings.upper),
            Subr.TOLOWER: self._on_string(strings.lower),
            Subr.JSON: self._json,
            Subr.STRTOLL: self._strtoll,
        }

    # Scratch space

    def _put(self, ctx: Context, data: bytes, space: int) -> int:
        """Put a string and its NUL into `space` bytes of scratch space; return its address."""
        address = self._operations.reserve(ctx, space)
        if address is None:
            return 0
        self._memory.write(address, (data + b"\0")[:space])
        return address

    def _put_at_end(self, ctx: Context, data: bytes, space: int) -> int:
        """Put a string at the end of `space` bytes: numbers are written from their last digit."""
        address = self._operations.reserve(ctx, space)
        if address is None:
            return 0
        address += space - len(data) - 1
        self._memory.write(address, data + b"\0")
        return address

    def _on_string(self, function: Callable[[bytes], bytes]) -> Subroutine:
        """Make a subroutine of a function from string to string."""

        def subroutine(ctx: Context, stack: Stack) -> int:
            text = self._operations.string(arg(stack, 0))
            size = self._operations.string_size
            return self._put(ctx, function(text)[: size - 1], size)

        return subroutine

    # Strings

    def _strjoin(self, ctx: Context, stack: Stack) -> int:
        size = self._operations.string_size
        joined = self._operations.string(arg(stack, 0)) + self._operations.string(arg(stack, 1))
        if len(joined) >= size or ctx.scratch_ptr + size > ctx.scratch_end:
            self._operations.core.flags |= NOSCRATCH
            return 0
        return self._put(ctx, joined, len(joined) + 1)

    def _lltostr(self, ctx: Context, stack: Stack) -> int | None:
        base = self._base(stack)
        if base is None:
            return None
        return self._put_at_end(ctx, strings.lltostr(arg(stack, 0), base), _NUMBER_SPACE)

    def _strtoll(self, _ctx: Context, stack: Stack) -> int | None:
        base = self._base(stack)
        if base is None:
            return None
        return strings.strtoll(self._operations.string(arg(stack, 0)), base) & WORD_MASK

    def _base(self, stack: Stack) -> int | None:
        """Return the base, the second argument; None, a fault, for an invalid one."""
        if len(stack) < 2:
            return 10
        base = arg(stack, 1)
        if 2 <= base <= strings.BASE_MAX:
            return base
        self._operations.core.flags |= ILLOP
        return None

    def _place(self, stack: Stack, find: Callable[[bytes, int], int]) -> int:
        """Return the address of a character, 0 if it is not there.

        The final NUL can be found too.
        """
        address = arg(stack, 0)
        text = self._operations.string(address)
        place = find((text + b"\0")[: self._operations.string_size], arg(stack, 1) & 0xFF)
        return 0 if place < 0 else address + place

    def _strstr(self, _ctx: Context, stack: Stack) -> int:
        address = arg(stack, 0)
        place = self._operations.string(address).find(self._operations.string(arg(stack, 1)))
        return 0 if place < 0 else address + place

    def _index(self, stack: Stack, find: Callable[[bytes, bytes, int | None], int]) -> int:
        start = signed(arg(stack, 2)) if len(stack) > 2 else None
        return find(self._operations.string(arg(stack, 0)), self._operations.string(arg(stack, 1)), start) & WORD_MASK

    def _substr(self, ctx: Context, stack: Stack) -> int:
        size = self._operations.string_size
        length = signed(arg(stack, 2)) if len(stack) > 2 else None
        part = strings.substr(self._operations.string(arg(stack, 0)), signed(arg(stack, 1)), length, size)
        return self._put(ctx, part, size)

    def _strtok(self, ctx: Context, stack: Stack) -> int:
        """Return the next token; its end is stored until the firing ends."""
        size = self._operations.string_size
        delimiters = self._operations.string(arg(stack, 1))
        if ctx.scratch_ptr + size > ctx.scratch_end:
            self._operations.core.flags |= NOSCRATCH
            return 0
        address = arg(stack, 0)
        if address:
            ctx.strtok_limit = address + size
        else:
            address = ctx.strtok
        text = self._memory.string(address, ctx.strtok_limit - address) if address else b""
        if not self._operations.can_load(address, min(len(text) + 1, size)):
            return 0
        start = len(text) - len(text.lstrip(delimiters))
        if start == len(text):
            ctx.strtok = ctx.strtok_limit = 0
            return 0
        end = start
        while end < len(text) and text[end] not in delimiters and end - start < size - 1:
            end += 1
        ctx.strtok = address + end
        return self._put(ctx, text[start:end], size)

    def _json(self, ctx: Context, stack: Stack) -> int:
        text = self._operations.string(arg(stack, 0))
        path = self._operations.string(arg(stack, 1))
        space = len(text) + 1
        if ctx.scratch_ptr + space + len(path) + 1 > ctx.scratch_end:
            self._operations.core.flags |= NOSCRATCH
            return 0
        value = jsonpath.find(text, path)
        return 0 if value is None else self._put(ctx, value, space)

    # Addresses

    def _inet_ntop(self, ctx: Context, stack: Stack) -> int:
        family = arg(stack, 0) & 0xFFFF_FFFF
        if family == inet.AF_INET:
            return self._ipv4(ctx, arg(stack, 1))
        if family == inet.AF_INET6:
            return self._ipv6(ctx, arg(stack, 1), mixed=True)
        self._operations.core.flags |= ILLOP
        return 0

    def _ipv4(self, ctx: Context, address: int) -> int:
        if not self._operations.can_load(address, 4):
            return 0
        number = self._memory.load(address, 4)
        return self._put_at_end(ctx, inet.ipv4(number.to_bytes(4, "little")).encode(), IPV4_SPACE)

    def _ipv6(self, ctx: Context, address: int, *, mixed: bool) -> int:
        """Write an IPv6 address; of one that embeds an IPv4 address only that, unless `mixed`."""
        if not self._operations.can_load(address, 16):
            return 0
        data = self._memory.read(address, 16)
        if len(data) < 16:
            return 0
        embedded = not mixed and inet.embeds_ipv4(data)
        text = inet.ipv4(data[12:]) if embedded else inet.ipv6(data)
        return self._put_at_end(ctx, text.encode(), IPV6_SPACE)
