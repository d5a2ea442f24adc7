"""From machine code to Python: what an operation without a native form asks.

Machine code calls one function for all of them, `upcall(which, a, b, c, d)`, which returns a word.
The words of the firing are copied to the `Context` before, and back after: Python's operations work
as they do everywhere.  An exception of Python's cannot go through machine code.  It is kept, the
firing ends as after a fault, and whoever began the firing raises it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from enum import IntEnum, auto
from typing import TYPE_CHECKING, Final

from emu.words import WORD_MASK
from trapline.framework.dynvars import slot
from trapline.framework.faults import ERROR, ILLOP, NO_ERROR
from trapline.framework.native.firing import UNREAD, Firing, tuple_stack
from trapline.framework.program import Scope
from trapline.framework.world import signed

if TYPE_CHECKING:
    from trapline.framework.context import Context
    from trapline.framework.machine import DifMachine
    from trapline.framework.operations import Stack
    from trapline.framework.probes import Probe
    from trapline.framework.variables import Statics

_CALLBACK: Final = ctypes.CFUNCTYPE(ctypes.c_uint64, *(5 * (ctypes.c_uint64,)))
_ARGUMENTS: Final = 5 * ctypes.c_uint64
_SCOPES: Final = {int(scope): scope for scope in Scope}


class Upcall(IntEnum):
    """What machine code asks of Python, with up to four words; the comments say which."""

    # size, address
    LOAD = auto()
    LOAD_USER = auto()
    LOAD_CHECKED = auto()
    # address, size, value
    STORE = auto()
    # source, size, destination
    COPY = auto()
    # size
    ALLOCATE = auto()
    # address, address
    COMPARE = auto()
    # number of the variable
    SCALAR = auto()
    # number of the array, index
    ELEMENT = auto()
    # number of the subroutine, what the destination has now
    SUBROUTINE = auto()
    # kind, size, value
    PUSH_REFERENCE = auto()
    # scope, number
    LOAD_STATIC = auto()
    # scope, number, value
    STORE_STATIC = auto()
    # scope, number, whether there is a tuple
    LOAD_DYNAMIC = auto()
    # scope, number, whether there is a tuple, value
    STORE_DYNAMIC = auto()


class Upcalls:
    """The upcalls of one consumer, and the words of its firings.

    `probe_of` finds the probe of an EPID.
    """

    def __init__(self, machine: DifMachine, context: Context, probe_of: Callable[[int], Probe]) -> None:
        self.firing = Firing()
        self.failure: BaseException | None = None
        """An exception that an operation has raised, until somebody raises it again."""
        self._machine = machine
        self._operations = machine.operations
        self._core = machine.operations.core
        self._context = context
        self._probe_of = probe_of
        self._tuple = tuple_stack()
        self._callback = _CALLBACK(self._called)
        memory, operations = machine.operations.memory, machine.operations
        self.table: dict[int, Callable[[int, int, int, int], int | None]] = {
            Upcall.LOAD: lambda size, address, _c, _d: memory.load(address, size),
            Upcall.LOAD_USER: lambda size, address, _c, _d: memory.load_user(address, size),
            Upcall.LOAD_CHECKED: lambda size, address, _c, _d: operations.load_checked(address, size),
            Upcall.STORE: lambda address, size, value, _d: operations.store(context, address, size, value),
            Upcall.COPY: lambda source, size, target, _d: operations.copy(context, source, size, target),
            Upcall.ALLOCATE: lambda size, _b, _c, _d: operations.allocate(context, size),
            Upcall.COMPARE: lambda a, b, _c, _d: operations.compare(a, b),
            Upcall.SCALAR: lambda number, _b, _c, _d: machine.builtins.scalar(context, number),
            Upcall.ELEMENT: lambda number, index, _c, _d: machine.builtins.element(context, number, index),
            Upcall.SUBROUTINE: self._subroutine,
            Upcall.PUSH_REFERENCE: self._push_reference,
            Upcall.LOAD_STATIC: self._load_static,
            Upcall.STORE_STATIC: self._store_static,
            Upcall.LOAD_DYNAMIC: self._load_dynamic,
            Upcall.STORE_DYNAMIC: self._store_dynamic,
        }

    @property
    def symbols(self) -> dict[str, int]:
        """Where machine code finds what is this consumer's."""
        return {
            "firing": self.firing.address,
            "tuple": ctypes.addressof(self._tuple),
            "upcall": ctypes.cast(self._callback, ctypes.c_void_p).value or 0,
        }

    def check(self) -> None:
        """Raise what an operation of the last firing has raised."""
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure

    def _called(self, which: int, a: int, b: int, c: int, d: int) -> int:
        if self.failure is not None:
            return 0  # the firing is over
        firing = self._enter()
        try:
            result = self.table[which](a, b, c, d)
        except BaseException as failure:  # noqa: BLE001  kept, and raised again
            self.failure = failure
            firing.flags |= ILLOP
            return 0
        self._leave(firing)
        return 0 if result is None else result & WORD_MASK

    def _enter(self) -> Firing:
        """Copy the words of the firing to the context."""
        firing, context = self.firing, self._context
        if firing.fresh:
            firing.fresh = 0
            args = tuple(_ARGUMENTS.from_address(firing.arguments))
            context.args, context.cpu, context.epid = args, firing.cpu, firing.epid
            context.probe = self._probe_of(firing.epid)
            context.thread = None
        context.timestamp = signed(firing.timestamp) if firing.timestamp == UNREAD else firing.timestamp
        context.walltimestamp = signed(firing.walltimestamp) if firing.walltimestamp == UNREAD else firing.walltimestamp
        context.scratch_base, context.scratch_end = firing.scratch_base, firing.scratch_end
        context.scratch_ptr = firing.scratch_pointer
        context.strtok, context.strtok_limit = firing.strtok, firing.strtok_limit
        self._core.flags = self._core.flags & NO_ERROR | firing.flags & ERROR
        return firing

    def _leave(self, firing: Firing) -> None:
        """Copy what an operation may have changed back."""
        context = self._context
        firing.timestamp, firing.walltimestamp = context.timestamp, context.walltimestamp
        firing.scratch_pointer = context.scratch_ptr
        firing.strtok, firing.strtok_limit = context.strtok, context.strtok_limit
        firing.flags, firing.illval = self._core.flags & ERROR, self._core.illval

    def _stack(self, *, used: int = 1) -> Stack:
        """Return the tuple stack, an empty one for an operation that does not use it."""
        entries, depth = self._tuple, self.firing.depth if used else 0
        return [(entries[2 * place], entries[2 * place + 1]) for place in range(depth)]

    def _subroutine(self, number: int, present: int, _c: int, _d: int) -> int:
        value = self._machine.subroutines.table[number](self._context, self._stack())
        return present if value is None else value

    def _push_reference(self, kind: int, size: int, value: int, _d: int) -> None:
        pushed: list[tuple[int, int]] = []
        self._operations.push_reference(pushed, kind, size, value)
        for number, length in pushed:
            depth = self.firing.depth
            self._tuple[2 * depth], self._tuple[2 * depth + 1] = number, length
            self.firing.depth = depth + 1

    def _statics(self, scope: int) -> tuple[Statics, int]:
        """Return the variables of a scope, and which copy of them."""
        variables = self._operations.variables
        return (variables.locals, self._context.cpu) if scope == Scope.LOCAL else (variables.globals, 0)

    def _load_static(self, scope: int, number: int, _c: int, _d: int) -> int:
        statics, copy = self._statics(scope)
        reference = statics.references.get(slot(number))
        return statics.values[copy][slot(number)] if reference is None else reference.address(copy)

    def _store_static(self, scope: int, number: int, value: int, _d: int) -> None:
        statics, copy = self._statics(scope)
        if slot(number) in statics.references:
            self._operations.store_static(statics, slot(number), copy, value)
        else:
            statics.values[copy][slot(number)] = value

    def _load_dynamic(self, scope: int, number: int, has_tuple: int, _d: int) -> int:
        return self._operations.load_dynamic(self._context, self._stack(used=has_tuple), number, _SCOPES[scope])

    def _store_dynamic(self, scope: int, number: int, has_tuple: int, value: int) -> None:
        stack = self._stack(used=has_tuple)
        self._operations.store_dynamic(self._context, stack, number, _SCOPES[scope], value)
