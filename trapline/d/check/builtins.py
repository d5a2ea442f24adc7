"""The built-in names of D: variables, subroutines, aggregating functions, actions.

Here are only tables, for each data model and version of the language.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final, TypeAlias, TypeVar

from emu.support.immutable import immutable
from trapline.d.check.typed import Variable
from trapline.d.types.data_models import INT64, MODELS, Model
from trapline.d.types.types import (
    CHAR,
    DYNAMIC,
    INT,
    LOCK,
    STACK,
    STRING,
    SYMBOL,
    UNSIGNED,
    USER_SYMBOL,
    VOID,
    Type,
    Typedef,
)
from trapline.framework.base.dif import Subr, Var
from trapline.framework.base.program import ActionKind, DataModel, LibraryAction, Scope

# The built-in variables that are arrays.
ARRAYS: Final = frozenset({Var.ARGS, Var.REGS, Var.UREGS, Var.VMREGS})

_T = TypeVar("_T")

Version: TypeAlias = tuple[int, ...]
NEWEST: Final[Version] = (1, 14)

# The version that brought a name; 1.0 for all others.
_SINCE: Final[Mapping[str, Version]] = {
    **dict.fromkeys("index rindex strchr strrchr strstr strtok substr".split(), (1, 1)),
    **dict.fromkeys("func mod setopt sym uaddr ucaller ufunc umod ustackdepth usym".split(), (1, 2)),
    **dict.fromkeys("htonl htonll htons ntohl ntohll ntohs".split(), (1, 3)),
    **dict.fromkeys("inet_ntoa inet_ntoa6 inet_ntop".split(), (1, 5)),
    "stddev": (1, 6),
    **dict.fromkeys(("llquantize", "vmregs"), (1, 7)),
    **dict.fromkeys(("tolower", "toupper"), (1, 8)),
    "print": (1, 9),
    "getf": (1, 10),
    **dict.fromkeys(("json", "strtoll"), (1, 11)),
}

_FAULTS: Final = "UNKNOWN BADADDR BADALIGN ILLOP DIVZERO NOSCRATCH KPRIV UPRIV TUPOFLOW BADSTACK"


@immutable
class Signature:
    """Parameters of a subroutine, aggregating function or action.

    `parameters` may hold None for one that takes anything; the last `optional` may be left out;
    with `varargs` any more may follow.
    """

    parameters: tuple[Type | None, ...] = ()
    optional: int = 0
    varargs: bool = False
    returns: Type = VOID


@immutable
class Subroutine:
    """A function of the DIF machine."""

    name: str
    number: Subr
    signature: Signature


@immutable
class AggregatingFunction:
    """An aggregating function; its first argument (if any) is the value."""

    name: str
    kind: ActionKind
    signature: Signature


@immutable
class Action:
    """An action: a statement of its own."""

    name: str
    number: LibraryAction
    signature: Signature
    records: bool = True
    """Whether it records data, which commit() and speculate() care about."""
    destroys: bool = False
    """Whether it changes the traced system, so that tracing with it must be allowed."""


@immutable
class Vocabulary:
    """The names of one data model and one version of the language."""

    model: Model
    variables: Mapping[str, Variable]
    constants: Mapping[str, tuple[int, Type]]
    subroutines: Mapping[str, Subroutine]
    aggregating: Mapping[str, AggregatingFunction]
    actions: Mapping[str, Action]

    def is_function(self, name: str) -> bool:
        """Return whether a name can be called."""
        return name in self.subroutines or self.is_action(name)

    def is_action(self, name: str) -> bool:
        """Return whether a name is that of an action or of an aggregating function."""
        return name in self.actions or name in self.aggregating


@cache
def vocabulary(model: DataModel = DataModel.LP64, version: Version = NEWEST) -> Vocabulary:
    """Return what can be named in a data model and a version."""
    types = MODELS[model]

    def known(names: Mapping[str, _T]) -> dict[str, _T]:
        return {name: one for name, one in names.items() if _SINCE.get(name, (1, 0)) <= version}

    return Vocabulary(
        types,
        known(
            {name: Variable(name, number, Scope.GLOBAL, type_, keys) for name, number, type_, keys in _variables(types)}
        ),
        {"NULL": (0, INT), **{f"DTRACEFLT_{name}": (code, INT) for code, name in enumerate(_FAULTS.split())}},
        known(
            {
                number.name.lower(): Subroutine(number.name.lower(), number, s)
                for number, s in _subroutines(types).items()
            }
        ),
        known({one.name: one for one in _AGGREGATING}),
        known({one.name: one for one in _actions(types)}),
    )


def _variables(model: Model) -> Iterator[tuple[str, Var, Type, tuple[Type, ...] | None]]:
    named = model.typedefs
    types: dict[Var, Type] = {
        Var.ARGS: DYNAMIC,
        **dict.fromkeys((Var.REGS, Var.UREGS, Var.VMREGS), named["uint64_t"]),
        Var.CURTHREAD: model.pointer_to(VOID),
        Var.TIMESTAMP: named["uint64_t"],
        Var.VTIMESTAMP: named["uint64_t"],
        **dict.fromkeys((Var.IPL, Var.EPID, Var.ID), named["uint_t"]),
        **dict.fromkeys((Var(Var.ARG0 + n) for n in range(10)), INT64),
        Var.STACKDEPTH: named["uint32_t"],
        Var.CALLER: named["uintptr_t"],
        **dict.fromkeys((Var.PROBEPROV, Var.PROBEMOD, Var.PROBEFUNC, Var.PROBENAME), STRING),
        **dict.fromkeys((Var.PID, Var.PPID), named["pid_t"]),
        Var.TID: named["id_t"],
        **dict.fromkeys((Var.EXECNAME, Var.ZONENAME, Var.EXECARGS, Var.JAILNAME), STRING),
        Var.WALLTIMESTAMP: INT64,
        Var.USTACKDEPTH: named["uint32_t"],
        Var.UCALLER: named["uint64_t"],
        Var.UID: Typedef("uid_t", UNSIGNED),
        Var.GID: Typedef("gid_t", UNSIGNED),
        **dict.fromkeys((Var.ERRNO, Var.JID, Var.CPU), INT),
    }
    for var, type_ in types.items():
        yield var.name.lower(), var, type_, (INT64,) if var in ARRAYS else None


def _returns(returns: Type, *parameters: Type, optional: int = 0) -> Signature:
    return Signature(parameters, optional, returns=returns)


def _subroutines(model: Model) -> dict[Subr, Signature]:
    named = model.typedefs
    pointer, text, lock = model.pointer_to(VOID), model.pointer_to(CHAR), model.pointer_to(LOCK)
    address, size, pid = named["uintptr_t"], named["size_t"], named["pid_t"]
    u16, u32, u64 = named["uint16_t"], named["uint32_t"], named["uint64_t"]
    return {
        Subr.RAND: _returns(INT),
        **dict.fromkeys((Subr.MUTEX_OWNED, Subr.MUTEX_TYPE_ADAPTIVE, Subr.MUTEX_TYPE_SPIN), _returns(INT, lock)),
        Subr.MUTEX_OWNER: _returns(pointer, lock),
        **dict.fromkeys((Subr.RW_READ_HELD, Subr.RW_WRITE_HELD, Subr.RW_ISWRITER), _returns(INT, lock)),
        **dict.fromkeys((Subr.SX_SHARED_HELD, Subr.SX_EXCLUSIVE_HELD, Subr.SX_ISEXCLUSIVE), _returns(INT, lock)),
        Subr.COPYIN: _returns(pointer, address, size),
        Subr.COPYINSTR: _returns(STRING, address, size, optional=1),
        Subr.SPECULATION: _returns(INT),
        Subr.PROGENYOF: _returns(INT, pid),
        Subr.STRLEN: _returns(size, text),
        Subr.COPYOUT: _returns(VOID, pointer, address, size),
        Subr.COPYOUTSTR: _returns(VOID, text, address, size),
        Subr.ALLOCA: _returns(pointer, size),
        Subr.BCOPY: _returns(VOID, pointer, pointer, size),
        Subr.COPYINTO: _returns(VOID, address, size, pointer),
        **dict.fromkeys((Subr.MSGDSIZE, Subr.MSGSIZE), _returns(size, pointer)),
        **dict.fromkeys((Subr.GETMAJOR, Subr.GETMINOR), _returns(UNSIGNED, u64)),
        Subr.DDI_PATHNAME: _returns(STRING, pointer, INT64),
        Subr.STRJOIN: _returns(STRING, text, text),
        Subr.LLTOSTR: _returns(STRING, INT64, INT, optional=1),
        **dict.fromkeys((Subr.BASENAME, Subr.DIRNAME, Subr.CLEANPATH), _returns(STRING, text)),
        **dict.fromkeys((Subr.STRCHR, Subr.STRRCHR), _returns(STRING, text, CHAR)),
        **dict.fromkeys((Subr.STRSTR, Subr.STRTOK), _returns(STRING, text, text)),
        Subr.SUBSTR: _returns(STRING, text, INT, INT, optional=1),
        **dict.fromkeys((Subr.INDEX, Subr.RINDEX), _returns(INT, text, text, INT, optional=1)),
        **dict.fromkeys((Subr.HTONS, Subr.NTOHS), _returns(u16, u16)),
        **dict.fromkeys((Subr.HTONL, Subr.NTOHL), _returns(u32, u32)),
        **dict.fromkeys((Subr.HTONLL, Subr.NTOHLL), _returns(u64, u64)),
        Subr.INET_NTOP: _returns(STRING, INT, pointer),
        Subr.INET_NTOA: _returns(STRING, model.pointer_to(UNSIGNED)),
        Subr.INET_NTOA6: _returns(STRING, pointer),
        **dict.fromkeys((Subr.TOUPPER, Subr.TOLOWER), _returns(STRING, text)),
        Subr.MEMREF: _returns(model.pointer_to(address), pointer, size),
        Subr.MEMSTR: _returns(STRING, pointer, CHAR, size),
        Subr.GETF: _returns(pointer, INT),
        Subr.JSON: _returns(STRING, text, text),
        Subr.STRTOLL: _returns(INT64, text, INT, optional=1),
    }


_AGGREGATING: Final = tuple(
    AggregatingFunction(kind.name.lower(), kind, signature)
    for kind, signature in {
        ActionKind.COUNT: Signature(),
        **dict.fromkeys(
            (ActionKind.MIN, ActionKind.MAX, ActionKind.AVG, ActionKind.SUM, ActionKind.STDDEV), Signature((None,))
        ),
        ActionKind.QUANTIZE: Signature((None, None), optional=1),
        ActionKind.LQUANTIZE: Signature((INT64, INT, INT, None, None), optional=2),
        ActionKind.LLQUANTIZE: Signature((INT64, INT, INT, INT, INT, None), optional=1),
    }.items()
)

_ANY: Final = Signature(varargs=True)
_FORMAT: Final = Signature((None,), varargs=True)
_STACK: Final = Signature(varargs=True, returns=STACK)


def _actions(model: Model) -> tuple[Action, ...]:
    named = model.typedefs
    address, text = named["uintptr_t"], model.pointer_to(CHAR)
    symbol = Signature((address,), returns=SYMBOL)
    user_symbol = Signature((address,), returns=USER_SYMBOL)
    return (
        Action("trace", LibraryAction.TRACE, Signature((None,))),
        Action("print", LibraryAction.PRINT, Signature((None,))),
        Action("printm", LibraryAction.PRINTM, Signature((named["size_t"], model.pointer_to(address)))),
        Action("printf", LibraryAction.PRINTF, _FORMAT),
        Action("printa", LibraryAction.PRINTA, _FORMAT),
        Action("tracemem", LibraryAction.TRACEMEM, Signature((None, named["size_t"]), varargs=True)),
        Action("stack", LibraryAction.STACK, _STACK),
        Action("ustack", LibraryAction.USTACK, _STACK),
        Action("jstack", LibraryAction.JSTACK, _STACK),
        Action("sym", LibraryAction.SYM, symbol),
        Action("func", LibraryAction.SYM, symbol),
        Action("mod", LibraryAction.MOD, symbol),
        Action("usym", LibraryAction.USYM, user_symbol),
        Action("ufunc", LibraryAction.USYM, user_symbol),
        Action("umod", LibraryAction.UMOD, user_symbol),
        Action("uaddr", LibraryAction.UADDR, user_symbol),
        Action("exit", LibraryAction.EXIT, Signature((INT,))),
        Action("clear", LibraryAction.CLEAR, _ANY),
        Action("trunc", LibraryAction.TRUNC, _ANY),
        Action("normalize", LibraryAction.NORMALIZE, _ANY),
        Action("denormalize", LibraryAction.DENORMALIZE, _ANY),
        Action("speculate", LibraryAction.SPECULATE, Signature((INT,)), records=False),
        Action("commit", LibraryAction.COMMIT, Signature((INT,)), records=False),
        Action("discard", LibraryAction.DISCARD, Signature((INT,)), records=False),
        Action("setopt", LibraryAction.SETOPT, Signature((text, text), optional=1)),
        Action("freopen", LibraryAction.FREOPEN, _FORMAT, destroys=True),
        Action("ftruncate", LibraryAction.FTRUNCATE, Signature()),
        Action("system", LibraryAction.SYSTEM, _FORMAT, destroys=True),
        Action("stop", LibraryAction.STOP, Signature(), records=False, destroys=True),
        Action("raise", LibraryAction.RAISE, Signature((INT,)), records=False, destroys=True),
        Action("chill", LibraryAction.CHILL, Signature((INT,)), records=False, destroys=True),
        Action("breakpoint", LibraryAction.BREAKPOINT, Signature(), records=False, destroys=True),
        Action("panic", LibraryAction.PANIC, Signature(), records=False, destroys=True),
    )
