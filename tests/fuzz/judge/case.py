"""A case for the judge, and its result: the structures of `testbins/linux/judge/judge.c`.

A case is the code, the registers before it, and what is done to the code's pages.  A case gives one result, or two
where the code is changed and executed again.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

CODE: Final = 0x1000_0000
ALIAS: Final = 0x3000_0000
DATA: Final = 0x2000_0000
DATA_SIZE: Final = 0x2000
PAGE: Final = 0x1000
LONGEST: Final = 128
GENERAL: Final = 32
VECTORS: Final = 64

_CASE: Final = struct.Struct(f"<8I{LONGEST}s{LONGEST}sQ3Q{GENERAL}Q{VECTORS}Q")
_RESULT: Final = struct.Struct(f"<2I3Q3Q{GENERAL}Q{VECTORS}Q")
_MASK: Final = (1 << 64) - 1


class Page(IntEnum):
    """What the second page of code is."""

    CODE = 0
    NO_ACCESS = 1
    NO_EXECUTION = 2
    NO_WRITING = 3
    GONE = 4


class Change(IntEnum):
    """How the second version of the code gets to where the first one has run."""

    NONE = 0
    STORE = 1
    READ = 2
    PREAD = 3
    READV = 4
    RECV = 5
    VM_WRITE = 6
    ALIAS = 7
    MAPPED_ANEW = 8
    PROTECTED = 9
    FILE_MAPPED = 10
    PIPE = 11


@dataclass(frozen=True)
class Case:
    """Code, the state before it, and what happens to its pages."""

    code: bytes
    mnemonics: tuple[str, ...]
    general: tuple[int, ...]
    vectors: tuple[int, ...]
    flags: int = 0
    control: int = 0
    seed: int = 1
    offset: int = 0
    page: Page = Page.CODE
    change: Change = Change.NONE
    changed_at: int = 0
    second: bytes = b""
    aliased: bool = False
    child: bool = False
    ignored: frozenset[str] = field(default=frozenset())
    """Fields of the result that the ISA leaves undefined after this code."""
    ignored_flags: int = 0
    """Flags that it leaves undefined."""
    judged: Case | None = None
    """The case that the judge executes in its stead, where qemu-user does less than the architecture; None: itself."""
    refused: bool = False
    """Whether the guest's CPU lacks the instruction: it is undefined, whatever the judge does."""

    @property
    def results(self) -> int:
        """Number of results."""
        return 2 if self.change else 1

    def packed(self) -> bytes:
        """Return the structure that the program reads."""
        general = [value & _MASK for value in self.general] + [0] * (GENERAL - len(self.general))
        vectors = [value & _MASK for value in self.vectors] + [0] * (VECTORS - len(self.vectors))
        return _CASE.pack(
            self.offset, len(self.code), self.page, self.change, self.aliased, self.child, self.changed_at,
            len(self.second), self.code, self.second, self.seed, CODE + self.offset, self.flags, self.control,
            *general, *vectors,
        )  # fmt: skip


@dataclass(frozen=True)
class Result:
    """The signal that ended the code, and the registers and memory after it."""

    signal: int
    code: int
    address: int
    data: int
    """A sum over the data's pages."""
    text: int
    """A sum over the code's bytes."""
    pc: int
    flags: int
    control: int
    general: tuple[int, ...]
    vectors: tuple[int, ...]

    def differences(self, other: Result, case: Case) -> dict[str, tuple[int, int]]:
        """Return the fields in which two results differ, but for those that `case` leaves undefined."""
        mask = ~case.ignored_flags
        found = {
            name: (getattr(self, name), getattr(other, name))
            for name in ("signal", "code", "address", "data", "text", "pc", "control")
        }
        found["flags"] = self.flags & mask, other.flags & mask
        for kind in ("general", "vectors"):
            values = zip(getattr(self, kind), getattr(other, kind), strict=True)
            found |= {f"{kind}[{index}]": pair for index, pair in enumerate(values)}
        return {
            name: pair
            for name, pair in found.items()
            if pair[0] != pair[1] and not {name, name.partition("[")[0]} & case.ignored
        }


def results(output: bytes) -> list[Result]:
    """Return the results that the program has written."""
    found = []
    for signal, code, address, data, text, pc, flags, control, *registers in _RESULT.iter_unpack(output):
        general, vectors = tuple(registers[:GENERAL]), tuple(registers[GENERAL:])
        found.append(Result(signal, code, address, data, text, pc, flags, control, general, vectors))
    return found
