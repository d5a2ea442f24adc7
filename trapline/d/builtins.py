"""What every program can name: built-in variables, subroutines, aggregating functions, actions, constants.

Tables only.  Sources: FreeBSD libdtrace dt_open.c (types and prototypes) and dtrace.h (numbers).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from trapline.d.typed import Variable
from trapline.d.types import (
    CHAR,
    CHAR_POINTER,
    DYNAMIC,
    INT,
    INT64,
    LONG,
    SIZE,
    STACK,
    STRING,
    SYMBOL,
    TYPEDEFS,
    UINT64,
    UINTPTR,
    UNSIGNED,
    USER_SYMBOL,
    VOID,
    VOID_POINTER,
    Pointer,
    Type,
    Typedef,
)
from trapline.framework.dif import Subr, Var
from trapline.framework.program import ActionKind, LibraryAction, Scope

_UINT: Final = TYPEDEFS["uint_t"]
_UINT32: Final = TYPEDEFS["uint32_t"]
_PID: Final = TYPEDEFS["pid_t"]
_ID: Final = TYPEDEFS["id_t"]

_VARIABLE_TYPES: Final[dict[Var, Type]] = {
    Var.ARGS: DYNAMIC,
    Var.REGS: UINT64,
    Var.UREGS: UINT64,
    Var.CURTHREAD: VOID_POINTER,
    Var.TIMESTAMP: UINT64,
    Var.VTIMESTAMP: UINT64,
    Var.IPL: _UINT,
    Var.EPID: _UINT,
    Var.ID: _UINT,
    **dict.fromkeys((Var(Var.ARG0 + n) for n in range(10)), INT64),
    Var.STACKDEPTH: _UINT32,
    Var.CALLER: UINTPTR,
    Var.PROBEPROV: STRING,
    Var.PROBEMOD: STRING,
    Var.PROBEFUNC: STRING,
    Var.PROBENAME: STRING,
    Var.PID: _PID,
    Var.TID: _ID,
    Var.EXECNAME: STRING,
    Var.ZONENAME: STRING,
    Var.WALLTIMESTAMP: INT64,
    Var.USTACKDEPTH: _UINT32,
    Var.UCALLER: UINT64,
    Var.PPID: _PID,
    Var.UID: Typedef("uid_t", UNSIGNED),
    Var.GID: Typedef("gid_t", UNSIGNED),
    Var.ERRNO: INT,
    Var.EXECARGS: STRING,
    Var.JID: INT,
    Var.JAILNAME: STRING,
    Var.CPU: INT,
}

ARRAYS: Final = frozenset({Var.ARGS, Var.REGS, Var.UREGS})
"""The built-in variables that are arrays."""

VARIABLES: Final[dict[str, Variable]] = {
    var.name.lower(): Variable(var.name.lower(), var, Scope.GLOBAL, type_, (INT64,) if var in ARRAYS else None)
    for var, type_ in _VARIABLE_TYPES.items()
}

_FAULTS: Final = "UNKNOWN BADADDR BADALIGN ILLOP DIVZERO NOSCRATCH KPRIV UPRIV TUPOFLOW BADSTACK"

CONSTANTS: Final[dict[str, tuple[int, Type]]] = {
    "NULL": (0, LONG),
    **{f"DTRACEFLT_{name}": (code, INT) for code, name in enumerate(_FAULTS.split())},
}


@dataclass(frozen=True, slots=True)
class Signature:
    """Parameters of a subroutine, aggregating function or action.

    `parameters` may hold None for one that takes anything; the last `optional` may be left out; with `varargs` any
    more may follow.
    """

    parameters: tuple[Type | None, ...] = ()
    optional: int = 0
    varargs: bool = False
    returns: Type = VOID


@dataclass(frozen=True, slots=True)
class Subroutine:
    """A function of the DIF machine."""

    name: str
    number: Subr
    signature: Signature


@dataclass(frozen=True, slots=True)
class AggregatingFunction:
    """What an aggregation may be assigned; its first argument (if any) is the value."""

    name: str
    kind: ActionKind
    signature: Signature


@dataclass(frozen=True, slots=True)
class Action:
    """An action: a statement of its own."""

    name: str
    number: LibraryAction
    signature: Signature
    records: bool = True
    """Whether it records data, which commit() and speculate() care about."""
    destroys: bool = False
    """Whether it changes the traced system, so that tracing with it must be allowed."""


def _returns(returns: Type, *parameters: Type, optional: int = 0) -> Signature:
    return Signature(parameters, optional, returns=returns)


_TEXT: Final = CHAR_POINTER
_LOCK: Final = VOID_POINTER
_U16, _U32, _U64 = TYPEDEFS["uint16_t"], TYPEDEFS["uint32_t"], TYPEDEFS["uint64_t"]

_SUBROUTINES: Final[dict[Subr, Signature]] = {
    Subr.RAND: _returns(INT),
    **dict.fromkeys((Subr.MUTEX_OWNED, Subr.MUTEX_TYPE_ADAPTIVE, Subr.MUTEX_TYPE_SPIN), _returns(INT, _LOCK)),
    Subr.MUTEX_OWNER: _returns(VOID_POINTER, _LOCK),
    **dict.fromkeys((Subr.RW_READ_HELD, Subr.RW_WRITE_HELD, Subr.RW_ISWRITER), _returns(INT, _LOCK)),
    **dict.fromkeys((Subr.SX_SHARED_HELD, Subr.SX_EXCLUSIVE_HELD, Subr.SX_ISEXCLUSIVE), _returns(INT, _LOCK)),
    Subr.COPYIN: _returns(VOID_POINTER, UINTPTR, SIZE),
    Subr.COPYINSTR: _returns(STRING, UINTPTR, SIZE, optional=1),
    Subr.SPECULATION: _returns(INT),
    Subr.PROGENYOF: _returns(INT, _PID),
    Subr.STRLEN: _returns(SIZE, _TEXT),
    Subr.COPYOUT: _returns(VOID, VOID_POINTER, UINTPTR, SIZE),
    Subr.COPYOUTSTR: _returns(VOID, CHAR_POINTER, UINTPTR, SIZE),
    Subr.ALLOCA: _returns(VOID_POINTER, SIZE),
    Subr.BCOPY: _returns(VOID, VOID_POINTER, VOID_POINTER, SIZE),
    Subr.COPYINTO: _returns(VOID, UINTPTR, SIZE, VOID_POINTER),
    **dict.fromkeys((Subr.MSGDSIZE, Subr.MSGSIZE), _returns(SIZE, VOID_POINTER)),
    **dict.fromkeys((Subr.GETMAJOR, Subr.GETMINOR), _returns(UNSIGNED, UINT64)),
    Subr.DDI_PATHNAME: _returns(STRING, VOID_POINTER, INT64),
    Subr.STRJOIN: _returns(STRING, _TEXT, _TEXT),
    Subr.LLTOSTR: _returns(STRING, INT64, INT, optional=1),
    **dict.fromkeys((Subr.BASENAME, Subr.DIRNAME, Subr.CLEANPATH), _returns(STRING, _TEXT)),
    **dict.fromkeys((Subr.STRCHR, Subr.STRRCHR), _returns(STRING, _TEXT, CHAR)),
    **dict.fromkeys((Subr.STRSTR, Subr.STRTOK), _returns(STRING, _TEXT, _TEXT)),
    Subr.SUBSTR: _returns(STRING, _TEXT, INT, INT, optional=1),
    **dict.fromkeys((Subr.INDEX, Subr.RINDEX), _returns(INT, _TEXT, _TEXT, INT, optional=1)),
    **dict.fromkeys((Subr.HTONS, Subr.NTOHS), _returns(_U16, _U16)),
    **dict.fromkeys((Subr.HTONL, Subr.NTOHL), _returns(_U32, _U32)),
    **dict.fromkeys((Subr.HTONLL, Subr.NTOHLL), _returns(_U64, _U64)),
    Subr.INET_NTOP: _returns(STRING, INT, VOID_POINTER),
    **dict.fromkeys((Subr.INET_NTOA, Subr.INET_NTOA6), _returns(STRING, VOID_POINTER)),
    **dict.fromkeys((Subr.TOUPPER, Subr.TOLOWER), _returns(STRING, _TEXT)),
    Subr.MEMREF: _returns(Pointer(UINTPTR), VOID_POINTER, SIZE),
    Subr.MEMSTR: _returns(STRING, VOID_POINTER, CHAR, SIZE),
    Subr.GETF: _returns(VOID_POINTER, INT),
    Subr.JSON: _returns(STRING, _TEXT, _TEXT),
    Subr.STRTOLL: _returns(INT64, _TEXT, INT, optional=1),
}

SUBROUTINES: Final[dict[str, Subroutine]] = {
    number.name.lower(): Subroutine(number.name.lower(), number, signature)
    for number, signature in _SUBROUTINES.items()
}

AGGREGATING: Final[dict[str, AggregatingFunction]] = {
    kind.name.lower(): AggregatingFunction(kind.name.lower(), kind, signature)
    for kind, signature in {
        ActionKind.COUNT: Signature(),
        **dict.fromkeys(
            (ActionKind.MIN, ActionKind.MAX, ActionKind.AVG, ActionKind.SUM, ActionKind.STDDEV), Signature((None,))
        ),
        ActionKind.QUANTIZE: Signature((None, None), optional=1),
        ActionKind.LQUANTIZE: Signature((None,) * 5, optional=2),
        ActionKind.LLQUANTIZE: Signature((None,) * 6, optional=1),
    }.items()
}

_ANY: Final = Signature(varargs=True)
_FORMAT: Final = Signature((None,), varargs=True)
_SYMBOL: Final = Signature((UINTPTR,), returns=SYMBOL)
_USER_SYMBOL: Final = Signature((UINTPTR,), returns=USER_SYMBOL)
_STACK: Final = Signature(varargs=True, returns=STACK)

ACTIONS: Final[dict[str, Action]] = {
    action.name: action
    for action in (
        Action("trace", LibraryAction.TRACE, Signature((None,))),
        Action("print", LibraryAction.PRINT, Signature((None,))),
        Action("printm", LibraryAction.PRINTM, Signature((SIZE, Pointer(UINTPTR)))),
        Action("printf", LibraryAction.PRINTF, _FORMAT),
        Action("printa", LibraryAction.PRINTA, _ANY),
        Action("tracemem", LibraryAction.TRACEMEM, Signature((None, SIZE), varargs=True)),
        Action("stack", LibraryAction.STACK, _STACK),
        Action("ustack", LibraryAction.USTACK, _STACK),
        Action("jstack", LibraryAction.JSTACK, _STACK),
        Action("sym", LibraryAction.SYM, _SYMBOL),
        Action("func", LibraryAction.SYM, _SYMBOL),
        Action("mod", LibraryAction.MOD, _SYMBOL),
        Action("usym", LibraryAction.USYM, _USER_SYMBOL),
        Action("ufunc", LibraryAction.USYM, _USER_SYMBOL),
        Action("umod", LibraryAction.UMOD, _USER_SYMBOL),
        Action("uaddr", LibraryAction.UADDR, _USER_SYMBOL),
        Action("exit", LibraryAction.EXIT, Signature((INT,))),
        Action("clear", LibraryAction.CLEAR, _ANY),
        Action("trunc", LibraryAction.TRUNC, _ANY),
        Action("normalize", LibraryAction.NORMALIZE, _ANY),
        Action("denormalize", LibraryAction.DENORMALIZE, _ANY),
        Action("speculate", LibraryAction.SPECULATE, Signature((INT,)), records=False),
        Action("commit", LibraryAction.COMMIT, Signature((INT,)), records=False),
        Action("discard", LibraryAction.DISCARD, Signature((INT,)), records=False),
        Action("setopt", LibraryAction.SETOPT, Signature((_TEXT, _TEXT), optional=1)),
        Action("freopen", LibraryAction.FREOPEN, _FORMAT, destroys=True),
        Action("ftruncate", LibraryAction.FTRUNCATE, Signature()),
        Action("system", LibraryAction.SYSTEM, _FORMAT, destroys=True),
        Action("stop", LibraryAction.STOP, Signature(), records=False, destroys=True),
        Action("raise", LibraryAction.RAISE, Signature((INT,)), records=False, destroys=True),
        Action("chill", LibraryAction.CHILL, Signature((INT,)), records=False, destroys=True),
        Action("breakpoint", LibraryAction.BREAKPOINT, Signature(), records=False, destroys=True),
        Action("panic", LibraryAction.PANIC, Signature(), records=False, destroys=True),
    )
}
