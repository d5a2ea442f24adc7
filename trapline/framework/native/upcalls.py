"""Calls from machine code to Python, for operations without a native form.

Machine code calls one function for all of them, `upcall(which, a, b, c, d)`, which returns a word.
The words of the firing are copied to the `Context` before, and back after: Python's operations work
as elsewhere.  A Python exception cannot pass through machine code: it is stored, the firing ends as
after a fault, and the caller that began the firing raises it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from emu.displaced.cpu_core import CoreWord
from emu.support.plain import function_address
from emu.support.words import WORD_MASK
from trapline.framework.base.dynvars import slot
from trapline.framework.base.faults import DROP, ILLOP
from trapline.framework.base.program import ActionKind, Scope
from trapline.framework.base.stacks import begins_function
from trapline.framework.base.world import signed
from trapline.framework.buffers.buffers import NO_SPACE
from trapline.framework.native.firing_words import Firing, tuple_stack
from trapline.framework.native.upcall_code import Upcall
from trapline.framework.probe.actions import recorder

if TYPE_CHECKING:
    from trapline.framework.base.variables import Statics
    from trapline.framework.buffers.buffers import PrincipalBuffer
    from trapline.framework.buffers.layout import Placed
    from trapline.framework.dif.operations import Stack
    from trapline.framework.probe.actions import ToBytes
    from trapline.framework.probe.ecb import Ecb
    from trapline.framework.probe.runtime import Runtime

_CALLBACK: Final = ctypes.CFUNCTYPE(ctypes.c_uint64, *(5 * (ctypes.c_uint64,)))
_ARGUMENTS: Final = 5 * ctypes.c_uint64
_FIRING: Final = int(CoreWord.FIRING)
_ASIDE: Final = int(CoreWord.ASIDE)
_PREPARED: Final = int(CoreWord.PREPARED)
_FAILED: Final = int(CoreWord.FAILED)
_SCOPES: Final = {int(scope): scope for scope in Scope}


class Upcalls:
    """The upcalls of one consumer, and the words of its firings."""

    def __init__(self, runtime: Runtime) -> None:
        self.firing = Firing()
        self.failure: BaseException | None = None
        """An exception that an operation has raised, until it is raised again."""
        self._runtime = runtime
        self._machine = machine = runtime.machine
        self._operations = operations = machine.operations
        self._core = operations.core
        self._context = context = runtime.context
        self._under_way = 0
        self._tuple = tuple_stack()
        self._callback = _CALLBACK(self._called)
        self._recorders: dict[tuple[int, int], tuple[ToBytes, int]] = {}
        memory, builtins = operations.memory, machine.builtins
        self.table: dict[int, Callable[[int, int, int, int], int | None]] = {
            Upcall.LOAD: lambda size, address, _c, _d: memory.load(address, size),
            Upcall.LOAD_USER: lambda size, address, _c, _d: memory.load_user(address, size),
            Upcall.STORE: lambda address, size, value, _d: operations.store(context, address, size, value),
            Upcall.COPY: lambda source, size, target, _d: operations.copy(context, source, size, target),
            Upcall.ALLOCATE: lambda size, _b, _c, _d: operations.allocate(context, size),
            Upcall.COMPARE: lambda a, b, _c, _d: operations.compare(a, b),
            Upcall.SCALAR: lambda number, _b, _c, _d: builtins.scalar(context, number),
            Upcall.USER_START: lambda pc, _b, _c, _d: begins_function(runtime.world, pc),
            Upcall.ELEMENT: lambda number, index, _c, _d: builtins.element(context, number, index),
            Upcall.SUBROUTINE: self._subroutine,
            Upcall.PUSH_REFERENCE: self._push_reference,
            Upcall.STORE_STATIC: self._store_static,
            Upcall.LOAD_DYNAMIC: self._load_dynamic,
            Upcall.STORE_DYNAMIC: self._store_dynamic,
            Upcall.NOW: lambda _a, _b, _c, _d: runtime.world.guest.now(),
            Upcall.CLEAN: lambda _a, _b, _c, _d: runtime.clean_if_due(),
            Upcall.RESERVE: lambda size, alignment, _c, _d: self._buffer.reserve(size, alignment),
            Upcall.RECORD: self._record,
            Upcall.EXIT: lambda _a, _b, _c, _d: runtime.exit(),
            Upcall.SPECULATE: self._speculate,
            Upcall.COMMIT: lambda number, _b, _c, _d: runtime.speculations.commit(number, self.firing.cpu),
            Upcall.DISCARD: lambda number, _b, _c, _d: runtime.speculations.discard(number, self.firing.cpu),
            Upcall.EFFECT: lambda kind, value, _c, _d: runtime.effects.table[ActionKind(kind)](context, value),
            Upcall.FAILED: lambda number, _b, _c, _d: runtime.failed(self._ecb, self._buffer, number),
        }

    @property
    def symbols(self) -> dict[str, int]:
        """The symbols of this consumer's data and functions."""
        return {
            "firing": self.firing.address,
            "tuple": ctypes.addressof(self._tuple),
            "upcall": function_address(self._callback),
        }

    def begin(self) -> bytes | None:
        """Prepare for a firing that Python begins; return the argument of `end`.

        An operation of one firing may fire another probe, after which the words are those of the
        first again.
        """
        return bytes(self.firing) + bytes(self._tuple) if self._under_way else None

    def end(self, before: bytes | None) -> None:
        """Restore the words of the current firing; raise what an operation has raised."""
        if before is not None:
            size = ctypes.sizeof(self.firing)
            ctypes.memmove(self.firing.address, before, size)
            ctypes.memmove(self._tuple, before[size:], len(before) - size)
            self.firing.fresh = 1
        self._raise()

    def _raise(self) -> None:
        """Raise what an operation has raised, once."""
        if self.failure is not None:
            failure, self.failure = self.failure, None
            self._core.words[_FAILED] = 0
            raise failure

    def _called(self, which: int, a: int, b: int, c: int, d: int) -> int:
        if self.failure is not None:
            return 0  # the firing is over
        core = self._core
        fires = core.words[_FIRING] or core.words[_ASIDE]
        if fires and not core.words[_PREPARED] and core.prepare is not None:
            core.prepare()
        firing = self._enter()
        self._under_way += 1
        try:
            result = self.table[which](a, b, c, d)
        except BaseException as failure:  # noqa: BLE001  kept, and raised again
            self.failure = failure
            core.flags |= ILLOP
            core.words[_FAILED] = 1
            core.raise_failure = self._raise
            return NO_SPACE & WORD_MASK if which == Upcall.RESERVE else 0
        finally:
            self._under_way -= 1
        self._leave(firing)
        return 0 if result is None else result & WORD_MASK

    def _enter(self) -> Firing:
        """Copy the words of the firing to the context."""
        firing, context = self.firing, self._context
        if firing.fresh:
            firing.fresh = 0
            context.args = tuple(_ARGUMENTS.from_address(firing.arguments))
            context.cpu, context.epid, context.thread = firing.cpu, firing.epid, None
            context.probe = self._ecb.probe
        context.fault_offset = signed(firing.fault_offset)
        context.timestamp, context.walltimestamp = signed(firing.timestamp), signed(firing.walltimestamp)
        context.scratch_base, context.scratch_end = firing.scratch_base, firing.scratch_end
        context.scratch_ptr = firing.scratch_pointer
        context.strtok, context.strtok_limit = firing.strtok, firing.strtok_limit
        return firing

    def _leave(self, firing: Firing) -> None:
        """Copy what an operation may have changed back."""
        context = self._context
        firing.timestamp, firing.walltimestamp = context.timestamp, context.walltimestamp
        firing.scratch_pointer = context.scratch_ptr
        firing.strtok, firing.strtok_limit = context.strtok, context.strtok_limit

    def take_tokens(self, args: tuple[int, ...]) -> None:
        """Let strtok() continue where an enabling in Python left it in the same firing."""
        firing, context = self.firing, self._context
        same = context.args is args
        firing.strtok, firing.strtok_limit = (context.strtok, context.strtok_limit) if same else (0, 0)

    def give_tokens(self, args: tuple[int, ...]) -> None:
        """Let an enabling in Python continue there."""
        context, firing = self._context, self.firing
        context.strtok, context.strtok_limit, context.args = firing.strtok, firing.strtok_limit, args

    @property
    def _ecb(self) -> Ecb:
        return self._runtime.ecb(self.firing.epid)

    @property
    def _buffer(self) -> PrincipalBuffer:
        return self._runtime.buffers[self.firing.cpu]

    def _placed(self, index: int) -> Placed:
        """Return an action of the clause that fires."""
        return self._ecb.clause.layout.actions[index]

    # Subroutines and variables

    def _stack(self, *, used: int = 1) -> Stack:
        """Return the tuple stack, an empty one for an operation that does not use it."""
        entries, depth = self._tuple, self.firing.depth if used else 0
        return [(entries[2 * place], entries[2 * place + 1]) for place in range(depth)]

    def _subroutine(self, number: int, present: int, _c: int, _d: int) -> int:
        value = self._machine.subroutines.table[number](self._context, self._stack())
        return present if value is None else value

    def _push_reference(self, kind: int, size: int, value: int, _d: int) -> None:
        pushed: Stack = []
        self._operations.push_reference(pushed, kind, size, value)
        for number, length in pushed:
            depth = self.firing.depth
            self._tuple[2 * depth], self._tuple[2 * depth + 1] = number, length
            self.firing.depth = depth + 1

    def _statics(self, scope: int) -> tuple[Statics, int]:
        """Return the variables of a scope, and which copy of them."""
        variables = self._operations.variables
        return (variables.locals, self._context.cpu) if scope == Scope.LOCAL else (variables.globals, 0)

    def _store_static(self, scope: int, number: int, value: int, _d: int) -> None:
        statics, copy = self._statics(scope)
        self._operations.store_static(statics, slot(number), copy, value)

    def _load_dynamic(self, scope: int, number: int, has_tuple: int, _d: int) -> int:
        return self._operations.load_dynamic(self._context, self._stack(used=has_tuple), number, _SCOPES[scope])

    def _store_dynamic(self, scope: int, number: int, has_tuple: int, value: int) -> None:
        stack = self._stack(used=has_tuple)
        self._operations.store_dynamic(self._context, stack, number, _SCOPES[scope], value)

    # Actions

    def _record(self, index: int, value: int, place: int, kept: int) -> None:
        """Write an action's record, by its recorder, to a place in the buffer."""
        known = self.firing.epid, index
        found = self._recorders.get(known)
        if found is None:
            placed = self._placed(index)
            record = recorder(placed, self._operations)
            assert record is not None
            found = self._recorders[known] = record, placed.size
        record, size = found
        data = record(self._context, value)
        if kept:
            data = data[:kept]
        ctypes.memmove(place, data.ljust(size, b"\0"), size)

    def _speculate(self, number: int, size: int, alignment: int, _d: int) -> int:
        buffer = self._runtime.speculations.buffer(number, self.firing.cpu)
        offset = NO_SPACE if buffer is None else buffer.reserve(size, alignment)
        if buffer is None or offset == NO_SPACE:
            self._core.flags |= DROP
            return 0
        self.firing.room = offset
        return buffer.address
