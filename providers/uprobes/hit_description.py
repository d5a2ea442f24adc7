"""The description of uprobes for machine code: the actions of each hit, as Python does them.

The hit cache (`emu.probe.hit_cache`) requests it after a hit that Python has served.  Machine code
serves the next ones, unless a consumer has no native form.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from emu.displaced.decision import Emulated
from emu.engine.hits.firing_code import GO_ON
from emu.engine.hits.hit_steps import COPY_FAULT, Call, Fire, HitStep, Register, Run
from emu.engine.state import HANDLED
from emu.probe.trap import Hit, Served
from providers.uprobes.native import FUNCTION, Asked, NativeUprobes
from providers.uprobes.records import Books, Installed, InstalledWords, Uprobe
from providers.uprobes.steps import DEBUG

if TYPE_CHECKING:
    from emu.guest.linux.kernel import Kernel
    from providers.uprobes.port import Port
    from providers.uprobes.returns import Returns
    from providers.uprobes.steps import Steps
    from providers.uprobes.tasks import Tasks

# The lowest bit of an exception's number in a key (`of_exception`).
_EXCEPTION: Final = 56


class Description:
    """Describes the hits of one guest's uprobes.

    `forget(probe)` drops a probe without references, `simulate(installed, address)` executes a
    plan.
    """

    def __init__(
        self,
        kernel: Kernel,
        port: Port,
        books: Books,
        tasks: Tasks,
        steps: Steps,
        returns: Returns,
        forget: Callable[[Uprobe], None],
        simulate: Callable[[Installed, int], None],
    ) -> None:
        self._kernel = kernel
        self._engine = kernel.engine
        self._port = port
        self._books = books
        self._tasks = tasks
        self._steps = steps
        self._returns = returns
        self._forget = forget
        self._simulate = simulate
        self._native: NativeUprobes | None = None

    def describe(self, address: int) -> Hit | Served | None:
        """Describe a hit, as `_hit` and `Steps` handle it."""
        thread, number = self._kernel.current, address >> _EXCEPTION
        if number == DEBUG and not self._port.step_trap:
            return Hit((self._call("debugged", 0),), exception=DEBUG)
        if number == COPY_FAULT:
            return Hit((self._call("faulted", 0),), exception=COPY_FAULT)
        space = self._books.spaces.get(thread.process.space) if thread is not None else None
        if space is None:
            return None
        if address == space.words.trampoline:
            for probe in self._books.by_words.values():
                self._describe_returns(probe)
            return Hit((self._call("returned", space.words.address),))
        installed = space.installed.get(address)
        if installed is not None:
            return self._describe_hit(installed)
        stepped = self._steps.behind(address, space) if self._port.step_trap else None
        return None if stepped is None else Hit((self._call("ended", stepped.words.address),))

    def _describe_hit(self, installed: Installed) -> Hit | Served:
        consumers, steps = installed.probe.consumers, list[HitStep]()
        for consumer in consumers:
            if consumer.handler is not None and not consumer.runs:
                return Served.PYTHON
            if consumer.runs:
                steps.append(Fire(consumer.runs, ()))
        if any(consumer.ret_handler is not None for consumer in consumers):
            steps.append(self._call("hijack", installed.words.address))
        decision = installed.probe.decision
        if isinstance(decision, Emulated):
            return Hit((*steps, Run(decision.plan.operations)), rest=partial(self._rest, installed))
        if not installed.words.slot:
            return Served.PYTHON
        return Hit((*steps, self._call("begin", installed.words.address)))

    def _describe_returns(self, probe: Uprobe) -> None:
        """Return the probes that fire when a function returns."""
        if probe.words.known:
            return
        wanted = [consumer for consumer in probe.consumers if consumer.ret_handler is not None]
        if not all(consumer.ret_runs for consumer in wanted):
            return
        arguments = (Register(FUNCTION), *map(Register, self._kernel.isa.calling.results))
        make, core, frame = self._engine.tracepoints.lasting, self._kernel.traps.core, self._kernel.frame
        probe.show_returns([make(core, frame, Fire(consumer.ret_runs, arguments)) for consumer in wanted])

    def _call(self, name: str, argument: int) -> Call:
        if self._native is None:
            asked = Asked(
                switch=lambda _: self._tasks.switch(),
                hijack=self._asked_to_hijack,
                gone=self._gone,
            )
            self._native = NativeUprobes(self._kernel, self._port, self._tasks.current, asked)
        return Call(self._native.address(name), argument)

    def _asked_to_hijack(self, words: int) -> int:
        """Make a function return to the trampoline, because machine code could not."""
        at = InstalledWords.from_address(words).at
        thread = self._kernel.current
        assert thread is not None
        space = self._books.spaces[thread.process.space]
        try:
            self._returns.hijack(thread, space, space.installed[at].probe, at)
        except BaseException as error:  # noqa: BLE001  raised again by the engine
            self._engine.handlers.fail(error)
            return HANDLED
        return GO_ON

    def _gone(self, words: int) -> int:
        self._forget(self._books.by_words[words])
        return 0

    def _rest(self, installed: Installed, address: int) -> int:
        """Carry out a plan whose memory machine code could not reach."""
        self._simulate(installed, address)
        return HANDLED
