"""Tries sites in machine code, as far as it can, for a pair of CPUs of the check."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from unicorn.unicorn_py3.unicorn import uclib

from emu.engine.access import Access
from emu.guest.linux.faults import page_fault
from emu.isa import ISAS
from emu.native.compiling import compiled
from emu.native.linking import Linked
from trapline.framework.engines import ProgramEngine, chosen
from trapline.lab.check.native.code import SCRATCH, BatchBlock, TrialBlock, TrialCode

if TYPE_CHECKING:
    from trapline.lab.check.cpu import TrialCpu
    from trapline.lab.check.states import State

_SIGNALLED: Final = ctypes.CFUNCTYPE(ctypes.c_uint64)
_AGREE: Final = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@cache
def _linked(isa_name: str) -> Any:
    isa = ISAS[isa_name]
    flags = isa.traps.flags
    number = isa.registers.by_name[flags].unicorn if flags else None
    code = TrialCode(isa, flags=number)
    source = code.module.source
    machine_code = compiled("check", source.encode(), lambda: source)
    linked = Linked(machine_code, {name: _address(getattr(uclib, name)) for name in code.names})
    return linked, _AGREE(linked.address("agree"))


def possible(plain: TrialCpu, patched: TrialCpu, *, wanted: bool | None) -> bool:
    """Return whether machine code is to try the states on two CPUs.

    `wanted` None: TRAPLINE_ENGINE says it.  Raises `trapline.framework.engines.EngineError`.
    """
    if wanted is None:
        wanted = chosen() is ProgramEngine.NATIVE
    return wanted and plain.engine.accelerated and patched.engine.accelerated


class Batches:
    """Runs batches of states on two CPUs, which must be accelerated."""

    def __init__(self, plain: TrialCpu, patched: TrialCpu, states: Sequence[State]) -> None:
        self._cpus = (plain, patched)
        self._states = states
        self._linked, self._agree = _linked(plain.isa.name)
        self._images = [_Images(cpu, states) for cpu in self._cpus]
        self._trials = [self._trial(cpu, images) for cpu, images in zip(self._cpus, self._images, strict=True)]
        self._stretches = (ctypes.c_uint64 * (2 * SCRATCH))()
        sizes = {f"size{number}": size for number, (_, size) in enumerate(plain.places)}
        self._batch = BatchBlock(
            pristine=plain.pristine_at,
            memory_size=plain.memory_size,
            stretches=ctypes.addressof(self._stretches),
            **sizes,
        )
        self._signalled = _SIGNALLED(self._same_signal)
        self._batch.signalled = _address(self._signalled)
        self._arguments = (self._batch.address, *(trial.address for trial in self._trials))
        self._areas = -1

    @staticmethod
    def _trial(cpu: TrialCpu, images: _Images) -> TrialBlock:
        engine = cpu.engine
        callbacks = engine.callbacks
        return TrialBlock(
            uc=engine.cpu.handle,
            cpu=engine.cpu.address,
            env=engine.cpu.env,
            size=images.size,
            images=images.address,
            words=engine.counter.address,
            trap=_address(callbacks.trap),
            invalid=_address(callbacks.invalid) if callbacks.invalid else 0,
            memory=cpu.memory,
            **{f"place{number}": at for number, (at, _) in enumerate(cpu.places)},
        )

    def left_over(self, address: int, numbers: Sequence[int]) -> Iterator[int]:
        """Try a site in states of the pool; yield those that Python has to try, when it has to."""
        batch, place = self._batch, 0
        words = (ctypes.c_uint64 * len(numbers))(*numbers)
        for number in set(numbers):
            for images in self._images:
                images.make(number)
        while True:
            if not self._show_scratch():
                yield from numbers[place:]
                return
            batch.site, batch.next, batch.count, batch.numbers = address, place, len(numbers), ctypes.addressof(words)
            for cpu in self._cpus:
                cpu.engine.counter.refresh()
            place = int(self._agree(*self._arguments))
            for cpu in self._cpus:
                cpu.kernel.trapping.forget()
                cpu.engine.handlers.raise_failure()
            if place == len(numbers):
                return
            yield numbers[place]
            place += 1

    def _same_signal(self) -> int:
        """Return whether a plan has met the fault that the plain CPU has met."""
        plain, patched = self._cpus
        raised = patched.kernel.trapping.forget()
        # What a page refuses is a write, or it is not there.
        return raised is not None and raised == page_fault(plain.space, Access.WRITE, self._trials[0].refused)

    def _show_scratch(self) -> bool:
        """Tell machine code where copies of instructions run; return whether that is possible."""
        areas = self._cpus[1].space.areas
        if len(areas) != self._areas:
            self._areas = len(areas)
            scratch = [area for area in areas if area.backing is None]
            self._batch.scratch = len(scratch)
            for place, area in enumerate(scratch[:SCRATCH]):
                self._stretches[2 * place], self._stretches[2 * place + 1] = area.start, area.end
        return self._batch.scratch <= SCRATCH

    @property
    def blocks(self) -> tuple[Any, ...]:
        """What machine code was told, and has told: for tests."""
        return (self._batch, *self._trials)


class _Images:
    """The CPU state in each state of a pool, made when it is first wanted."""

    def __init__(self, cpu: TrialCpu, states: Sequence[State]) -> None:
        self._cpu = cpu
        self._states = states
        self._addresses = (ctypes.c_uint64 * len(states))()
        self.address = ctypes.addressof(self._addresses)
        self._kept: dict[int, Any] = {}
        context = cpu.engine.new_context()
        self.size = ctypes.c_size_t.from_address(_address(context.context)).value

    def make(self, number: int) -> None:
        """Make the image of a state."""
        if number in self._kept:
            return
        self._cpu.load_numbered(self._states, number)
        image = ctypes.create_string_buffer(ctypes.string_at(self._cpu.engine.cpu.env, self.size), self.size)
        self._kept[number] = image
        self._addresses[number] = ctypes.addressof(image)
