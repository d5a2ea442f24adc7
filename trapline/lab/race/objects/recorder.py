"""The actions of a patcher's CPUs on the patched code: stores, barriers, calls of other CPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Final, Self

from emu.elf.image import SegmentFlag
from emu.engine.events.access_observer import Observer
from emu.engine.events.barriers import watch_barriers
from emu.guest.function import STACK, STACK_SIZE, FunctionGuest
from emu.isa.fetch import Barrier, Effect
from trapline.lab.objects.user_code import UserCode
from trapline.lab.race.operations import Data, FetchAnew, Flush, Operation, Store, Wait
from trapline.lab.race.patch import Patch, RaceError

Snapshot = tuple[tuple[int, bytes], ...]


class Snapshots:
    """The patcher's data at moments of its runs, by number: equal data have one number.

    Its data are what the objects may write, what was allocated, and its stack.
    """

    def __init__(self, code: UserCode) -> None:
        self._code = code
        self._numbers: dict[Snapshot, int] = {}
        self._all: list[Snapshot] = []
        self.take()

    def take(self) -> int:
        """Return the number of the present data."""
        found = self.present()
        number = self._numbers.setdefault(found, len(self._all))
        if number == len(self._all):
            self._all.append(found)
        return number

    def present(self) -> Snapshot:
        """Return the present data: addresses, and bytes."""
        code = self._code
        segments = [(one.vaddr, one.memsz) for one in code.image.segments if one.flags & SegmentFlag.WRITE]
        ranges = (*segments, *code.heaps, (STACK - STACK_SIZE, STACK_SIZE))
        return tuple((address, code.guest.engine.read(address, size)) for address, size in ranges)

    def put(self, snapshot: int | Snapshot) -> None:
        """Put data back."""
        for address, data in self._all[snapshot] if isinstance(snapshot, int) else snapshot:
            self._code.guest.engine.memory.write(address, data)


Event = Operation | Effect
# Bytes that an operation on caches reaches: the lines of the emulated CPUs have so many.
_LINE: Final = 64
# The steps that make stores fetchable where caches of instructions are not coherent, in their order.
_MAINTENANCE: Final = (Effect.CLEAN, Effect.COMPLETE, Effect.INVALIDATE, Effect.COMPLETE)


class Recorder:
    """Records what each CPU does to the code of a patch; entered (`with`) while the patcher runs."""

    def __init__(self, code: UserCode, patch: Patch) -> None:
        self._code = code
        self._patch = patch
        code.place(patch.address, patch.code)
        physical = code.guest.physical(patch.address)
        assert physical is not None
        self._physical = physical
        self.events: list[tuple[int, Event]] = []
        """(number of the CPU, what it did)"""
        self._open: tuple[int, int, int] | None = None
        """A store that has begun: CPU, offset in the code, bytes."""
        self.snapshots: Snapshots | None = None
        """Numbers the patcher's data, if there is a handler that reads them."""
        self._data = 0
        self._stale = self._inside = False
        self._stacks = [range(at, at + STACK_SIZE) for at in map(self._stack, code.cpus)]
        self._exits = ExitStack()
        parts = [(one.value, code.image.read(one.value, one.size)) for one in code.image.functions]
        for cpu in code.cpus:
            watch_barriers(cpu.engine, parts, partial(self._barrier, cpu.cpu))

    @staticmethod
    def _stack(cpu: FunctionGuest) -> int:
        """Return where in RAM a CPU's stack is."""
        physical = cpu.physical(cpu.stack - STACK_SIZE)
        assert physical is not None
        return physical

    def begin(self) -> None:
        """Begin the scripts of a race: the patcher's data are the first ones again."""
        if self.snapshots is not None:
            self.snapshots.put(0)
            self._data = 0

    def set(self, data: bytes) -> None:
        """Put bytes at the address of the patch, without an event."""
        self._code.guest.engine.memory.write(self._patch.site, data)

    def __enter__(self) -> Self:
        self.events.clear()
        self._inside = True
        self.settle()
        for cpu in self._code.cpus:
            self._exits.enter_context(Observer(cpu.engine, accessed=self._accessed_by(cpu.cpu)))
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()
        self.settle()
        self._inside = False

    def add(self, event: Event) -> None:
        """Record an event of the CPU whose call the glue serves."""
        self.settle()
        self.events.append((self._code.running.cpu, event))

    def covers(self, address: int, size: int, *, lines: bool = False) -> bool:
        """Return whether a range has patched bytes, or `lines`, whether its cache lines have."""
        if lines:
            address, size = address // _LINE * _LINE, size + address % _LINE + _LINE - 1
        return address < self._patch.end and self._patch.site < address + size

    def taken(self, action: Callable[[], None]) -> list[tuple[int, Event]]:
        """Return the events of an action, instead of recording them."""
        self.settle()
        before, self.events = self.events, []
        data = self._data
        try:
            action()
            self.settle()
            return self.events
        finally:
            # What the action did to data and nobody records is found at the next event.
            self.events, self._data = before, data

    def settle(self, *, event: bool = True) -> None:
        """Record the store that had begun, and the data: now their bytes are in memory.

        `event`: something follows, before which also the data on the stack matter.
        """
        if self._open is not None:
            cpu, offset, size = self._open
            self._open = None
            start = self._physical + offset
            data = bytes(self._code.guest.engine.memory.ram[start : start + size])
            self.events.append((cpu, Store(self._patch.address + offset, data)))
        if self.snapshots is not None and self._inside and (event or self._stale):
            self._settle_data(self.snapshots)

    def _settle_data(self, snapshots: Snapshots) -> None:
        """Record that the patcher's data are others than before."""
        self._stale = False
        number = snapshots.take()
        if number != self._data:
            self._data = number
            self.events.append((self._code.running.cpu, Data(number)))

    def _accessed_by(self, cpu: int) -> Callable[[bool, int, int], None]:
        def accessed(writes: bool, physical: int, size: int) -> None:
            offset = physical - self._physical
            is_code = writes and -size < offset < len(self._patch.code)
            self.settle(event=is_code)
            if is_code:
                self._open = cpu, offset, size
            elif writes and not any(physical in stack for stack in self._stacks):
                self._stale = True

        return accessed

    def _barrier(self, cpu: int, barrier: Barrier) -> None:
        self.settle()
        if barrier.address:
            line = self._code.cpus[cpu].engine.read_register(barrier.address) // _LINE * _LINE
            if not (line < self._patch.end and self._patch.site < line + _LINE):
                return
        self.events.append((cpu, barrier.effect))


def operations(patch: Patch, events: Iterable[Event]) -> Iterator[Operation]:
    """Yield the operations of the patching CPU whose events these are.

    Raises `RaceError` if it changes bytes that are not part of the patch.
    """
    stored, waited, done = False, True, len(_MAINTENANCE)
    for event in events:
        if isinstance(event, Store):
            store = _within(patch, event)
            if store is not None:
                yield store
                stored, waited, done = True, False, 0
            continue
        if not isinstance(event, Effect):
            yield event
            waited = waited and not isinstance(event, Data)
            continue
        if done < len(_MAINTENANCE) and _MAINTENANCE[done] in event:
            done += 1
            if done == len(_MAINTENANCE):
                waited = True
                yield Flush(anew=False)
        if event & (Effect.ORDER | Effect.COMPLETE) and not waited:
            waited = True
            yield Wait()
        if Effect.SYNCHRONIZE in event and stored:
            yield FetchAnew()


def _within(patch: Patch, store: Store) -> Store | None:
    """Return the part of a store in the patched bytes; those around them must not change."""
    first, last = max(store.address, patch.site), min(store.address + len(store.data), patch.end)
    for number, byte in enumerate(store.data):
        at = store.address + number
        if not patch.site <= at < patch.end and patch.code[at - patch.address] != byte:
            raise RaceError(f"the object writes {patch.where(at)}, which is not part of the patch")
    if first >= last:
        return None
    return Store(first, store.data[first - store.address : last - store.address], store.whole)
