"""Trying sites in machine code, as far as possible, on a pair of CPUs."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from emu.engine.memory.access import Access
from emu.engine.qemu import block_layout as layout
from emu.engine.qemu import library
from emu.engine.qemu.hooks import TLB_FILL, Hooks
from emu.guest.linux.traps import page_fault
from emu.isa import ISAS
from emu.native.compile import compiled
from emu.native.link import Linked
from emu.support.plain import function_address
from trapline.framework.base.engines import ProgramEngine, chosen
from trapline.lab.check.native.code import TrialCode
from trapline.lab.check.native.images import Images
from trapline.lab.check.native.trial import AREAS, NOTED, BatchBlock, Outcome, TrialBlock

if TYPE_CHECKING:
    from emu.guest.linux.mm.address_space import Area
    from emu.isa.linux_signals import SignalInfo
    from trapline.lab.check.cpu.cpu import TrialCpu
    from trapline.lab.check.cpu.states import State

_SIGNALLED: Final = ctypes.CFUNCTYPE(ctypes.c_uint64)
_AGREE: Final = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)


@cache
def _linked(isa_name: str, offsets: layout.BlockLayout) -> Any:
    isa = ISAS[isa_name]
    flags = isa.traps.flags
    number = isa.unicorn.ids[flags] if flags else None
    code = TrialCode(isa, offsets, flags=number)
    source = code.module.source
    machine_code = compiled("check", source.encode(), lambda: source)
    linked = Linked(machine_code, {name: library.address(name) for name in code.names})
    return linked, _AGREE(linked.address("agree"))


def possible(*, wanted: bool | None, accelerated: bool) -> bool:
    """Return whether machine code tries the states on CPUs, which may be `accelerated` by it.

    `wanted` None: TRAPLINE_ENGINE decides.  Raises `trapline.framework.base.engines.EngineError`.
    """
    if wanted is None:
        wanted = chosen() is ProgramEngine.NATIVE
    return wanted and accelerated and layout.find() is not None


class _Table:
    """Ranges of addresses, for machine code."""

    def __init__(self) -> None:
        self._words = (ctypes.c_uint64 * (2 * AREAS))()
        self.address = ctypes.addressof(self._words)

    def show(self, areas: Sequence[Area]) -> int:
        """Put stretches into it; return how many there are, or -1 if there is no room for them."""
        if len(areas) > AREAS:
            return -1
        for place, area in enumerate(areas):
            self._words[2 * place], self._words[2 * place + 1] = area.start, area.end
        return len(areas)


class _Trial:
    """The data of one CPU for machine code."""

    def __init__(self, cpu: TrialCpu, images: Images, linked: Linked, hook_out: int) -> None:
        engine = cpu.engine
        callbacks = engine.callbacks
        self.cpu = cpu
        self._base = images.base_of(cpu)
        self._noted = (ctypes.c_uint64 * NOTED)()
        self._nothing = ctypes.c_uint64()
        self._bounds = _Table()
        self._shown: list[tuple[int, int]] = []
        self._executed = 0
        self.block = TrialBlock(
            uc=engine.cpu.handle,
            cpu=engine.cpu.address,
            env=engine.cpu.env,
            base=ctypes.addressof(self._base),
            images=images.address,
            varying=images.varying.address,
            fixed=images.fixed.address,
            vectors=images.vectors.address,
            flags=images.flags,
            words=engine.counter.address,
            take=engine.tracepoints.take,
            trap=function_address(callbacks.trap),
            invalid=function_address(callbacks.invalid) if callbacks.invalid else 0,
            memory=cpu.memory,
            physical=cpu.space.memory_at,
            noted=ctypes.addressof(self._noted),
            host_wrote=ctypes.addressof(cpu.space.host_wrote),
            bounds=self._bounds.address,
            fill=function_address(callbacks.fill),
            engine_hook=engine.fill_hook,
            reach=linked.address("reach"),
            nothing=ctypes.addressof(self._nothing),
        )
        own = ctypes.c_void_p(linked.address("fill"))
        self.block.own_hook = Hooks(engine.cpu, self.block.address).add(TLB_FILL, own)
        ctypes.c_uint8.from_address(self.block.own_hook + hook_out).value = 1

    def leave_stepping(self, address: int) -> None:
        """Make the engine run blocks of any length, if Python has stepped; code is at the address."""
        engine = self.cpu.engine
        if engine.running.stepped:
            engine.pc = address
            engine.run(hard=0)

    def forget_stepped(self) -> None:
        """Forget the blocks after instructions that Python has stepped.

        Unicorn stops a step in the next block, which it has translated by then: a branch to another
        page, executed by machine code, would execute that block, too.
        """
        if self._executed != self.cpu.executed:
            self._executed = self.cpu.executed
            self.cpu.engine.cpu.forget_blocks()

    def show_areas(self) -> bool:
        """Store the mapped areas; return whether there is room for them."""
        self._shown = self._mapped()
        self.block.areas = max(0, count := self._bounds.show(self.cpu.space.areas))
        return count >= 0

    @property
    def outdated(self) -> bool:
        """Whether areas were mapped after they were stored, for copies."""
        return self._shown != self._mapped()

    def _mapped(self) -> list[tuple[int, int]]:
        return [(area.start, area.end) for area in self.cpu.space.areas]


class Batches:
    """Runs batches of states on two CPUs, for which it must be `possible`."""

    def __init__(self, plain: TrialCpu, patched: TrialCpu, states: Sequence[State]) -> None:
        offsets = layout.find()
        assert offsets is not None
        linked, self._agree = _linked(plain.isa.name, offsets)
        self._images = Images(plain, states)
        self._plain, self._patched = self._trials = [
            _Trial(cpu, self._images, linked, offsets.hook_out) for cpu in (plain, patched)
        ]
        self._scratch = _Table()
        self._batch = BatchBlock(
            pristine=plain.pristine_at,
            memory_size=plain.memory_size,
            stretches=self._scratch.address,
            registers=self._images.registers.address,
        )
        self._signalled = _SIGNALLED(self._same_signal)
        self._faulted = _SIGNALLED(self._put_back)
        self._batch.signalled, self._batch.faulted = map(function_address, (self._signalled, self._faulted))
        self._arguments = (self._batch.address, *(trial.block.address for trial in self._trials))

    def left_over(
        self,
        sites: array[int],
        numbers: Sequence[int],
        *,
        repeats: bool = False,
        following: Callable[[int], int] = lambda place: place + 1,
    ) -> Iterator[int]:
        """Try states of the pool, each at its site; yield the places of those that Python must try.

        `sites` has an address of 64 bits for each of the numbers; `repeats` says that the
        instructions are repeated string instructions; `following` returns the place that is tried
        after one of Python's.
        """
        batch, place = self._batch, 0
        words = array("Q", numbers)
        batch.sites, batch.numbers = sites.buffer_info()[0], words.buffer_info()[0]
        batch.count, batch.repeats, batch.excepted, batch.put_back = len(numbers), int(repeats), 0, 0
        self._images.make_all(numbers)
        while place < len(numbers):
            if self._show_areas():
                place = self._try_from(place, sites[place])
                if place == len(numbers):
                    return
                if self._patched.outdated:  # Python has served a hit, and mapped room for the copy
                    continue
            yield place
            place = following(place)

    def _try_from(self, place: int, site: int) -> int:
        """Try states from a place on, whose site is given; return the place of one for Python."""
        self._batch.next = place
        self._plain.forget_stepped()
        self._patched.leave_stepping(site)
        for trial in self._trials:
            trial.cpu.engine.counter.refresh()
        place = int(self._agree(*self._arguments))
        for trial in self._trials:
            trial.cpu.kernel.trapping.forget()
            trial.cpu.engine.handlers.raise_failure()
        return place

    def _same_signal(self) -> int:
        """Return whether both CPUs have met the same fault (`BatchBlock`)."""
        try:
            original, raised = map(self._signal, self._trials)
        except BaseException as error:  # noqa: BLE001  raised again after the batch
            self._patched.cpu.engine.handlers.fail(error)
            return 0
        if raised is None or raised != original:
            return 0
        if self._plain.block.ended == Outcome.EXCEPTION:
            self._batch.excepted = self._batch.site
        return 1

    def _signal(self, trial: _Trial) -> SignalInfo | None:
        """Return the fault that a thread has met, which a provider has put back if it ran a copy."""
        cpu, block = trial.cpu, trial.block
        if block.ended == Outcome.EXCEPTION:
            cpu.engine.handlers.trap(block.refused)
        raised = cpu.kernel.trapping.forget()
        if raised is None:
            return self._fault(trial) if block.ended == Outcome.FAULT else None
        found = cpu.kernel.trapping.corrected(cpu.thread, raised)
        block.pc = cpu.engine.pc
        return found

    @staticmethod
    def _fault(trial: _Trial) -> SignalInfo:
        """Return the page fault that a CPU has met."""
        # A page refuses an access because it is a write, or because it is not mapped.
        return page_fault(trial.cpu.space, Access.WRITE, trial.block.refused)

    def _put_back(self) -> int:
        """Let the provider serve the fault of a copy; return whether the fault stays as it is."""
        cpu = self._patched.cpu
        try:
            met = self._fault(self._patched)
            return int(cpu.kernel.trapping.corrected(cpu.thread, met) == met)
        except BaseException as error:  # noqa: BLE001  raised again after the batch
            cpu.engine.handlers.fail(error)
            return 0

    def _show_areas(self) -> bool:
        """Store the mapped areas for machine code; return whether that is possible."""
        shown = [trial.show_areas() for trial in self._trials]
        areas = self._patched.cpu.space.areas
        self._batch.scratch = self._scratch.show([area for area in areas if area.backing is None])
        return all(shown)
