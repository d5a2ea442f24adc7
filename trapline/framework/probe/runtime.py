"""The running part of a consumer's state: what its clauses read, change and call as they fire.

Source: FreeBSD dtrace.c dtrace_probe(), dtrace_probe_error(), dtrace_state_clean().
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from emu.support.plain import Word, address_of, words
from emu.support.words import WORD_MASK
from trapline.framework.base.blocks import ConsumerWord
from trapline.framework.base.context import Context
from trapline.framework.base.faults import DROP, fault_code
from trapline.framework.base.probes import Probe
from trapline.framework.base.variables import Variables
from trapline.framework.buffers.aggbuffer import AggregationBuffer
from trapline.framework.buffers.buffers import FillBuffer, PrincipalBuffer
from trapline.framework.buffers.speculation import Speculations
from trapline.framework.dif.builtin import Builtins
from trapline.framework.dif.interpreter import DifMachine
from trapline.framework.dif.operations import Operations
from trapline.framework.dif.subroutines import Subroutines
from trapline.framework.probe.actions import Effects
from trapline.framework.probe.ecb import Ecb
from trapline.framework.probe.enabled import Enabled
from trapline.framework.probe.registry import Registry
from trapline.framework.probe.settings import Settings

_NEXT_CLEAN: Final = int(ConsumerWord.NEXT_CLEAN)


class Activity(IntEnum):
    """The state of a consumer (DTRACE_ACTIVITY_*)."""

    INACTIVE = 0
    WARMUP = 1
    ACTIVE = 2
    DRAINING = 3
    COOLDOWN = 4
    STOPPED = 5


class Runtime:
    """What the clauses of one consumer read, change and call as they fire."""

    _next_clean = Word(ConsumerWord.NEXT_CLEAN)

    def __init__(self, registry: Registry, worth_compiling: int) -> None:
        self.world = registry.world
        self.words = words(len(ConsumerWord))
        """`ConsumerWord`, which machine code reads."""
        self.block = address_of(self.words)
        self.activity = Activity.INACTIVE
        self.active = False
        """Whether `activity` is ACTIVE: asked at every firing."""
        self.worth_compiling = worth_compiling
        """After how many firings a clause becomes machine code; 0: never."""
        self.settings = Settings()
        self.enabled = Enabled()
        self.context = Context()
        self.variables = Variables(self.world.memory, self.world.cpus)
        self.operations = Operations(self.world, self.variables, kernel_access=True)
        self.buffers: list[PrincipalBuffer] = []
        self.aggregation_buffers: list[AggregationBuffer] = []
        self.speculations = Speculations(self.world.memory, self.enabled.record_size, self.world.guest.now)
        builtins = Builtins(self.operations)
        self.machine = DifMachine(self.operations, builtins, Subroutines(self.operations, self.speculations))
        self.effects = Effects(self.operations)
        self.double_errors = 0
        """Faults of the clauses of ERROR."""
        self._registry = registry
        self._handle = self.world.memory.allocate(bytearray(8))
        self._address = self._handle.base
        self._buffer_addresses = words(self.world.cpus)
        self.aggregation_addresses = words(self.world.cpus)
        """By CPU: where machine code finds its aggregation buffer, once it is shared."""
        self.words[ConsumerWord.REGIONS] = address_of(self.world.memory.table)
        self.words[ConsumerWord.GLOBALS] = self.variables.globals.addresses[0]
        self.words[ConsumerWord.LOCALS] = address_of(self.variables.locals.addresses)
        self.words[ConsumerWord.BUFFERS] = address_of(self._buffer_addresses)
        self.words[ConsumerWord.AGGREGATIONS] = address_of(self.aggregation_addresses)

    def ecb(self, epid: int) -> Ecb:
        """Return an enabling by its EPID."""
        return self.enabled.ecbs[epid - 1]

    # The state of the consumer

    def set(self, activity: Activity) -> None:
        """Change what the consumer is doing."""
        self.activity = activity
        self.active = activity is Activity.ACTIVE
        self.words[ConsumerWord.ACTIVE] = self.active

    @property
    def exiting(self) -> bool:
        """Whether exit() was called, and tracing has not been stopped yet."""
        return self.activity is Activity.DRAINING

    def fire_meta(self, name: str, *rest: int) -> None:
        """Fire BEGIN, END or ERROR for this consumer."""
        self._registry.fire_meta(name, self._address, *rest)

    def is_meta(self, probe: Probe) -> bool:
        """Return whether a probe is of the `dtrace` provider, which the framework fires itself."""
        return probe.provider is self._registry.meta

    def meta(self, probe: Probe, args: tuple[int, ...]) -> bool:
        """Return whether BEGIN, END or ERROR is that of this consumer, and to run."""
        return args[0] == self._address and (probe.name != "BEGIN" or self.activity is Activity.WARMUP)

    def exit(self) -> None:
        """End tracing: the action of that name (DTRACEACT_EXIT)."""
        if self.activity in {Activity.WARMUP, Activity.ACTIVE}:
            self.set(Activity.DRAINING)
            self.world.guest.interrupt()
        elif self.activity is not Activity.COOLDOWN:
            self.world.core.flags |= DROP

    def failed(self, ecb: Ecb, buffer: PrincipalBuffer, action: int) -> None:
        """Handle an error flag: a drop is silent, a fault fires ERROR.

        Action 0 is the predicate.
        """
        core = self.world.core
        if core.flags & DROP:
            return
        buffer.errors += 1
        if ecb.probe is self._registry.error:
            self.double_errors += 1
            return
        offset = self.context.fault_offset & WORD_MASK
        # FreeBSD passes the sixth argument only on amd64; its other ports lose it.
        self.fire_meta("ERROR", ecb.epid, action, offset, fault_code(core.flags), core.illval & WORD_MASK)

    def clean_if_due(self) -> None:
        """Do the cleaner's work if cleanrate has passed: free chunks, finish speculations."""
        now = self.world.guest.now()
        if now >= self.words[_NEXT_CLEAN]:
            self._next_clean = now + self.settings.values["cleanrate"]
            self.variables.dynamic.clean()
            self.speculations.clean()

    # Buffers

    def start(self) -> None:
        """Make the buffers, of the sizes that the options and the enablings ask for.

        Tracing may begin then.  Raises `DeviceError`.
        """
        world, settings, options = self.world, self.settings, self.settings.values
        reserve = settings.reserve(ecb for ecb in self.enabled.ecbs if self.is_meta(ecb.probe))
        settings.fit(reserve)
        self.buffers += [
            settings.principal(world.memory, self.enabled.record_size, world.guest.interrupt, reserve)
            for _ in range(world.cpus)
        ]
        self.speculations.start(options["nspec"], options["specsize"], self.buffers)
        self.aggregation_buffers += [AggregationBuffer(options["aggsize"]) for _ in range(world.cpus)]
        for cpu, buffer in enumerate(self.buffers):
            self._buffer_addresses[cpu] = buffer.address
        self.variables.start(options["dynvarsize"])
        settings.clamp()
        self._next_clean = world.guest.now() + options["cleanrate"]
        self.set(Activity.WARMUP)
        for cpu, buffer in enumerate(self.buffers):
            if options.get("cpu", cpu) == cpu:
                buffer.activate()

    def cool_down(self) -> None:
        """Let nothing but END record any more."""
        self.set(Activity.COOLDOWN)
        for buffer in self.buffers:
            if isinstance(buffer, FillBuffer):
                buffer.cooling_down, buffer.reserve_end = True, 0

    def release(self) -> None:
        """Give all memory back."""
        self.speculations.release()
        self.variables.release()
        for buffer in self.buffers:
            buffer.release()
        self.buffers.clear()
        self.machine.release()
        self.world.memory.release(self._handle)
