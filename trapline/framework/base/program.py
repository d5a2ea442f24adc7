"""A compiled D program as data: the compiler's output for the framework.

These are the pieces of an enabling as DOF describes them (FreeBSD dtrace.h dtrace_ecbdesc_t,
dtrace_actdesc_t, dtrace_difo_t): nothing here refers to syntax, and nothing to a running consumer.
"""

from __future__ import annotations

from dataclasses import field
from enum import IntEnum
from typing import Final

from emu.support.immutable import immutable
from providers.base import Attribute, DependencyClass, Stability

# The stability of programs that use no less stable name.
STABLE: Final = Attribute(Stability.STABLE, Stability.STABLE, DependencyClass.COMMON)

PROVIDER_NAME_MAX = 64
MODULE_NAME_MAX = 64
FUNCTION_NAME_MAX = 192
# Name lengths, the final NUL included (FreeBSD; illumos allows 128 for functions).
PROBE_NAME_MAX = 64


@immutable
class ProbeDescription:
    """provider:module:function:name.

    Empty fields and globs match many, a non-zero `id` matches one probe.
    """

    provider: str = ""
    module: str = ""
    function: str = ""
    name: str = ""
    id: int = 0

    def __str__(self) -> str:
        return f"{self.provider}:{self.module}:{self.function}:{self.name}"


class DataModel(IntEnum):
    """The size of long and of pointers (CTF_MODEL_*)."""

    ILP32 = 1
    LP64 = 2


class TypeKind(IntEnum):
    """Kind of a DIF type (DIF_TYPE_*)."""

    CTF = 0
    STRING = 1


BY_REFERENCE = 1
# Flags of `DifType` (DIF_TF_BYREF, DIF_TF_BYUREF).
BY_USER_REFERENCE = 2


@immutable
class DifType:
    """Type of a DIF value (dtrace_diftype_t); `size` in bytes, 0 for a string means strsize."""

    kind: TypeKind = TypeKind.CTF
    ckind: int = 0
    """CTF kind (CTF_K_*): 1 integer, 2 float, 3 pointer, 4 array, 6 struct, 7 union, 8 enum, 10
    typedef."""
    flags: int = 0
    size: int = 8


INT64 = DifType(TypeKind.CTF, 1, 0, 8)
INT32 = DifType(TypeKind.CTF, 1, 0, 4)
STRING = DifType(TypeKind.STRING, 0, BY_REFERENCE, 0)


class VariableKind(IntEnum):
    """Kind of a variable (DIFV_KIND_*)."""

    ARRAY = 0
    SCALAR = 1


class Scope(IntEnum):
    """Scope of a variable (DIFV_SCOPE_*)."""

    GLOBAL = 0
    THREAD = 1
    LOCAL = 2


REFERENCED = 1
# Flags of `DifVariable` (DIFV_F_REF, DIFV_F_MOD).
MODIFIED = 2


@immutable
class DifVariable:
    """A variable a DIF object uses (dtrace_difv_t)."""

    name: str
    id: int
    kind: VariableKind
    scope: Scope
    flags: int
    type: DifType


@immutable
class Difo:
    """A DIF object (dtrace_difo_t): code and its tables.

    `strings` is the string table itself: NUL-terminated strings, offset 0 the empty string.
    """

    code: tuple[int, ...]
    integers: tuple[int, ...] = ()
    strings: bytes = b"\0"
    variables: tuple[DifVariable, ...] = ()
    returns: DifType = INT64

    def string(self, offset: int) -> str:
        """Return the string at `offset` of the string table."""
        return self.strings[offset : self.strings.index(0, offset)].decode("utf-8", "surrogateescape")


class ActionKind(IntEnum):
    """Actions (DTRACEACT_*, DTRACEAGG_*); the class is `kind & 0xff00`."""

    NONE = 0
    DIFEXPR = 1
    EXIT = 2
    PRINTF = 3
    PRINTA = 4
    LIBACT = 5
    TRACEMEM = 6
    TRACEMEM_DYNSIZE = 7
    PRINTM = 8
    USTACK = 0x101
    JSTACK = 0x102
    USYM = 0x103
    UMOD = 0x104
    UADDR = 0x105
    STOP = 0x201
    RAISE = 0x202
    SYSTEM = 0x203
    FREOPEN = 0x204
    STACK = 0x401
    SYM = 0x402
    MOD = 0x403
    BREAKPOINT = 0x501
    PANIC = 0x502
    CHILL = 0x503
    SPECULATE = 0x601
    COMMIT = 0x602
    DISCARD = 0x603
    COUNT = 0x701
    MIN = 0x702
    MAX = 0x703
    AVG = 0x704
    SUM = 0x705
    STDDEV = 0x706
    QUANTIZE = 0x707
    LQUANTIZE = 0x708
    LLQUANTIZE = 0x709

    @property
    def is_aggregation(self) -> bool:
        """Return whether this is an aggregating function."""
        return self & 0xFF00 == 0x700

    @property
    def is_destructive(self) -> bool:
        """Return whether enabling it needs the destructive option."""
        return self & 0xFF00 in (0x200, 0x500)


class LibraryAction(IntEnum):
    """Argument of a LIBACT action (libdtrace DT_ACT_*): from 54, FreeBSD's last subroutine + 1."""

    PRINTF = 54
    TRACE = 55
    TRACEMEM = 56
    STACK = 57
    STOP = 58
    BREAKPOINT = 59
    PANIC = 60
    SPECULATE = 61
    COMMIT = 62
    DISCARD = 63
    CHILL = 64
    EXIT = 65
    USTACK = 66
    PRINTA = 67
    RAISE = 68
    CLEAR = 69
    NORMALIZE = 70
    DENORMALIZE = 71
    TRUNC = 72
    SYSTEM = 73
    JSTACK = 74
    FTRUNCATE = 75
    FREOPEN = 76
    SYM = 77
    MOD = 78
    USYM = 79
    UMOD = 80
    UADDR = 81
    SETOPT = 82
    PRINT = 83
    PRINTM = 84


@immutable
class ActionDescription:
    """One action of an enabling (dtrace_actdesc_t).

    * A statement such as printf with n values is n actions with the same `statement`; one without
      values is a single action whose DIF object returns the int 0.  The first carries `format`.
    * `format` is normalised by the compiler, as libdtrace does: the type of each argument is
      written into its conversion (%d of an unsigned value becomes %u, ...), so that the consumer
      needs record sizes only.
    * An aggregation is its tuple elements as DIFEXPR (or STACK, SYM ...) actions followed by the
      aggregating action.  The first tuple element is always the aggregation variable's id.  The
      value is the aggregating action's own `difo` (None for count()); an increment (quantize's last
      argument) is a further DIFEXPR, last in the tuple, whose return type has size 0.  `tuple_size`
      of the aggregating action counts the elements before it, an increment included.
    * `argument` of lquantize and llquantize is the encoded parameter word, of stack() the number of
      frames (0: the option's default), of ustack() strsize << 32 | frames, of LIBACT a
      `LibraryAction`.
    """

    kind: ActionKind
    difo: Difo | None = None
    argument: int = 0
    format: str = ""
    tuple_size: int = 0
    statement: int = 0
    """Number of the statement in its program, from 1 (libdtrace's uarg)."""


@immutable
class EcbDescription:
    """The description of an enabling (dtrace_ecbdesc_t): a clause and a probe description."""

    probe: ProbeDescription
    predicate: Difo | None = None
    actions: tuple[ActionDescription, ...] = ()


@immutable
class Program:
    """A compiled program: its enablings in text order and the options its pragmas set."""

    ecbs: tuple[EcbDescription, ...]
    options: tuple[tuple[str, str | None], ...] = ()
    aggregations: tuple[str, ...] = field(default=())
    """Names of the aggregations; the aggregation with variable id i (from 1) is `aggregations[i -
    1]`."""
    stability: Attribute = STABLE
    """The least stability of the names in its statements."""
    model: DataModel = DataModel.LP64
