"""The steps of the CPU that patches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from trapline.lab.race.fork import ForkSteps
from trapline.lab.race.memory import Content, History
from trapline.lab.race.operations import (
    Data,
    Divert,
    Enter,
    Exclude,
    FetchAnew,
    FetchStopped,
    Flush,
    Forget,
    FreeTrampoline,
    Interrupt,
    Learn,
    Leave,
    Link,
    ListProcesses,
    Operation,
    Quiesce,
    Release,
    RemoteFence,
    Returned,
    Signal,
    Stop,
    Store,
    Swap,
    Wait,
    WriteChild,
)
from trapline.lab.race.patch import Patch
from trapline.lab.race.state import Cpu, Mode, Move, World

# The name of the patching CPU in tokens.
PATCHER = "P"
# The address of all data in the list of stores, and the bytes of a number: they keep their order among each other.
_DATA_ADDRESS = -4
_NUMBER = 4
# Operations that do not wait until the CPU's earlier stores are visible.
_AT_ONCE = (
    Link
    | Divert
    | Returned
    | Forget
    | FetchAnew
    | Signal
    | RemoteFence
    | Exclude
    | ListProcesses
    | FreeTrampoline
    | Enter
    | Leave
)


class PatcherSteps:
    """The next steps of the patching CPU."""

    def __init__(self, patch: Patch, script: tuple[Operation, ...]) -> None:
        self._patch = patch
        self._rules = patch.isa.fetching
        self._script = script

    def moves(self, world: World) -> Iterator[Move]:
        """Yield the steps: a store gets visible, or the next operation begins or ends."""
        waiting = world.pending[:1] if self._rules.ordered else self._independent(world.pending)
        for address, data in waiting:
            if address == _DATA_ADDRESS:
                rest = tuple(one for one in world.pending if one != (address, data))
                number = int.from_bytes(data, "little")
                text = f"the store to the patcher's data ({number}) gets visible"
                yield Move(f"{PATCHER}:data", text, world._replace(pending=rest, data=number))
                continue
            shown = self.stored(world, address, data)
            rest = tuple(one for one in world.pending if one != (address, data))
            text = f"the store of {data.hex(' ')} at {self._patch.where(address)} gets visible"
            yield Move(f"{PATCHER}:{address - self._patch.address:x}", text, shown._replace(pending=rest))
        if world.at < len(self._script):
            operation = self._script[world.at]
            after = self._after(world, operation)
            if after is not None:
                yield Move(PATCHER, str(operation), after._replace(at=world.at + 1, heard=0))

    @staticmethod
    def _independent(pending: tuple[tuple[int, bytes], ...]) -> tuple[tuple[int, bytes], ...]:
        """Return the first store to each byte: stores to one address keep their order."""
        found: list[tuple[int, bytes]] = []
        covered: set[int] = set()
        for address, data in pending:
            addresses = set(range(address, address + len(data)))
            if not addresses & covered:
                found.append((address, data))
            covered |= addresses
        return tuple(found)

    def stored(self, world: World, address: int, data: bytes) -> World:
        """Return the state with one more content, in which a store is visible."""
        return self._added(world, self._with_bytes(world.history[-1], address, data))

    def _with_bytes(self, last: Content, address: int, data: bytes, page: int = 0) -> Content:
        """Return a content with other bytes; `page`: 1 for those of a new page."""
        at = address - self._patch.site
        return Content(last.page + page, last.data[:at] + data + last.data[at + len(data) :])

    def _added(self, world: World, content: Content) -> World:
        return world if content == world.history[-1] else world._replace(history=(*world.history, content))

    def _stored_itself(self, world: World, address: int, data: bytes, page: int = 0) -> History:
        """Return what the patching CPU may fetch itself after a store; `page`: a newer page."""
        if not world.own:
            return ()
        content = self._with_bytes(world.own[-1], address, data, page)
        return (content,) if self._rules.coherent or page else (*world.own, content)

    def fetching_anew_itself(self, world: World) -> World:
        """Return the state in which the patching CPU has discarded what it had fetched."""
        if self._rules.broadcast:
            return world._replace(own=world.own[world.cleaned :], cleaned=0)
        return world._replace(own=world.own[-1:])

    def _flushed(self, world: World, *, anew: bool) -> World:
        """Return the state after what the ISA has for caches of instructions."""
        if self._rules.broadcast:
            world = world._replace(clean=len(world.history) - 1, cleaned=max(0, len(world.own) - 1))
        return self.fetching_anew_itself(world) if anew else world

    @staticmethod
    def _entered(world: World, after_store: bool) -> World:
        """Return the state in which the patching CPU executes the code."""
        cpu = world.cpus[-1]._replace(mode=Mode.RUNS, repeats=after_store)
        return world._replace(cpus=(*world.cpus[:-1], cpu))

    def _parts(self, store: Store) -> tuple[tuple[int, bytes], ...]:
        """Return the parts of a store, which is divided where it may tear."""
        start, end, rules = store.address, store.address + len(store.data), self._rules
        whole = start // rules.block == (end - 1) // rules.block or (
            len(store.data) in {1, 2, 4, 8} and start % len(store.data) == 0
        )
        if store.whole and whole:
            return ((start, store.data),)
        step = rules.block if store.whole and rules.block > 1 else 1
        cuts = [start, *(at for at in range(start + 1, end) if at % step == 0), end]
        return tuple((a, store.data[a - start : b - start]) for a, b in pairwise(cuts))

    def _after(self, world: World, operation: Operation) -> World | None:
        """Return the state after an operation, None if the operation has to wait."""
        away = (Mode.DONE, Mode.PATCHES)
        everyone = sum(1 << number for number, cpu in enumerate(world.cpus) if cpu.mode not in away)
        heard = world.heard & everyone == everyone
        match operation:
            case Store():
                own = self._stored_itself(world, operation.address, operation.data)
                return world._replace(pending=world.pending + self._parts(operation), own=own)
            case Data(number):
                return world._replace(pending=(*world.pending, (_DATA_ADDRESS, number.to_bytes(_NUMBER, "little"))))
            case _ if world.pending and not isinstance(operation, _AT_ONCE):
                return None
            case Swap(address, data):
                page = self._with_bytes(world.history[-1], address, data, 1)
                return self._added(world, page)._replace(own=self._stored_itself(world, address, data, 1), cleaned=0)
            case Flush(anew):
                return self._flushed(world, anew=anew)
            case Wait() | Signal():
                return world
            case FetchAnew():
                return self.fetching_anew_itself(world)
            case Enter(after_store):
                return self._entered(world, after_store)
            case Leave():
                return world if world.cpus[-1].mode is Mode.PATCHES else None
            case RemoteFence():
                return self._fetching_anew(world, {Mode.RUNS, Mode.TRAPPED, Mode.STOPPED})
            case FetchStopped():
                return self._fetching_anew(world, {Mode.STOPPED})
            case Interrupt() | Quiesce() | Stop():
                return world if heard else None
            case Release(synchronize):
                return world._replace(cpus=tuple(self._released(world, cpu, synchronize) for cpu in world.cpus))
            case Link(owner, on):
                bit = 1 << owner
                linked = world.linked | bit if on else world.linked & ~bit
                return world._replace(linked=linked, on=world.on & ~bit, may=world.may | bit if on else world.may)
            case Returned(owner, enabled):
                bit = 1 << owner
                if enabled:
                    return world._replace(on=world.on | bit)
                return world._replace(on=world.on & ~bit, may=world.may & ~bit)
            case _:
                return self._recorded(world, operation)

    @staticmethod
    def _recorded(world: World, operation: Operation) -> World | None:
        """Return the state after an operation on the tracer's own records, None if it has to wait."""
        match operation:
            case Divert(on):
                return world._replace(diverts=on)
            case Learn():
                return world._replace(known=True)
            case Forget():
                return world._replace(known=False)
            case FreeTrampoline():
                return world._replace(freed=True)
            case Exclude(on):
                forking = any(cpu.mode is Mode.FORKS for cpu in world.cpus)
                return None if on and forking else world._replace(excluded=on)
            case ListProcesses():
                return world._replace(listed=bool(world.child))
            case WriteChild(data):
                return ForkSteps.reached(world, data)
            case _:
                raise AssertionError(operation)

    def _released(self, world: World, cpu: Cpu, synchronize: bool) -> Cpu:
        if cpu.mode is not Mode.STOPPED:
            return cpu
        return self.refetching(world, cpu._replace(mode=Mode.RUNS), synchronize=synchronize)

    def _fetching_anew(self, world: World, modes: set[Mode]) -> World:
        """Return the state in which the CPUs in some modes have fetched anew."""
        return world._replace(
            cpus=tuple(
                self.refetching(world, cpu, synchronize=True) if cpu.mode in modes else cpu for cpu in world.cpus
            )
        )

    def trapped(self, world: World, cpu: Cpu) -> World:
        """Return the state in which a CPU has taken a trap: what the patching one fetches then."""
        return self.fetching_anew_itself(world) if cpu.patches and self._rules.interrupted else world

    @staticmethod
    def data(world: World, cpu: Cpu) -> int:
        """Return the number of the patcher's data that a CPU sees."""
        if cpu.patches:
            own = [data for address, data in world.pending if address == _DATA_ADDRESS]
            return int.from_bytes(own[-1], "little") if own else world.data
        return world.data

    def refetching(self, world: World, cpu: Cpu, *, synchronize: bool) -> Cpu:
        """Return a CPU after an interrupt, whose handler may `synchronize`."""
        if not synchronize and not self._rules.interrupted:
            return cpu
        if cpu.forked:
            return cpu._replace(floor=len(world.child) - 1)
        floor = world.clean if self._rules.broadcast and not self._patch.isa.traps.coherent else len(world.history) - 1
        return cpu._replace(floor=max(cpu.floor, floor))

    def answers(self, world: World, number: int) -> Iterator[Move]:
        """Yield the answers of a CPU to the operation for which the patching CPU waits."""
        cpu, bit = world.cpus[number], 1 << number
        if world.at >= len(self._script) or world.heard & bit or world.pending:
            return
        name, operation = f"{number + 1}!", self._script[world.at]
        # A fork is a long system call, and takes interrupts; a handler does not.
        if cpu.mode is not Mode.RUNS and not (cpu.mode is Mode.FORKS and isinstance(operation, Interrupt)):
            return
        match operation:
            case Interrupt(synchronize):
                after = self.refetching(world, cpu, synchronize=synchronize)
                text = "is interrupted" + (" and fetches anew" if after.floor != cpu.floor else "")
            case Stop():
                after, text = cpu._replace(mode=Mode.STOPPED), f"is stopped at {self._patch.where(cpu.pc)}"
            case Quiesce():
                if self._patch.site < cpu.pc < self._patch.end:
                    return
                after, text = cpu, "is seen outside the patched bytes"
            case _:
                return
        cpus = (*world.cpus[:number], after, *world.cpus[number + 1 :])
        yield Move(name, text, world._replace(heard=world.heard | bit, cpus=cpus))
