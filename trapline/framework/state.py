"""One consumer's state: its enablings, buffers and options, and what it is doing (dtrace_state_t).

Source: FreeBSD dtrace.c dtrace_state_create(), dtrace_state_go(), dtrace_state_stop(),
the ioctls.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from emu.plain import Word, address_of, words
from emu.words import WORD_MASK
from providers.base import ArgumentDescription
from providers.dof.sections import DofError
from trapline.framework.actions import Effects
from trapline.framework.aggbuffer import AggregationBuffer
from trapline.framework.blocks import ConsumerWord
from trapline.framework.buffers import FillBuffer, PrincipalBuffer
from trapline.framework.builtin import Builtins
from trapline.framework.context import Context
from trapline.framework.device import (
    AggregationDescription,
    AggregationSnapshot,
    Answer,
    BufferSnapshot,
    DeviceError,
    EnabledProbe,
    ProbeInfo,
    Status,
)
from trapline.framework.ecb import Ecb
from trapline.framework.enabled import Enabled
from trapline.framework.enabling import Enabling
from trapline.framework.engines import ProgramEngine
from trapline.framework.faults import DROP, fault_code
from trapline.framework.functions import DifFunctions
from trapline.framework.ioctl import answer
from trapline.framework.machine import DifMachine
from trapline.framework.operations import Operations
from trapline.framework.program import ProbeDescription, Program
from trapline.framework.search import Search
from trapline.framework.settings import Settings
from trapline.framework.speculation import Speculations
from trapline.framework.subroutines import Subroutines
from trapline.framework.variables import Variables

if TYPE_CHECKING:
    from trapline.framework.dtrace import DTrace
    from trapline.framework.probes import Probe

# FreeBSD stops at 256 KiB (kern.dtrace.dof_maxsize), and tells users to raise it; memory is no concern here.
_DOF_MAX: Final = 1 << 26
_NEXT_CLEAN: Final = int(ConsumerWord.NEXT_CLEAN)


class Activity(IntEnum):
    """The state of a consumer (DTRACE_ACTIVITY_*)."""

    INACTIVE = 0
    WARMUP = 1
    ACTIVE = 2
    DRAINING = 3
    COOLDOWN = 4
    STOPPED = 5


class ConsumerState:
    """One consumer; `ioctl` is how it is reached from outside."""

    _next_clean = Word(ConsumerWord.NEXT_CLEAN)

    def __init__(self, dtrace: DTrace, engine: ProgramEngine, worth_compiling: int) -> None:
        self.world = dtrace.world
        self.words = words(len(ConsumerWord))
        """`ConsumerWord`, which machine code reads."""
        self.block = address_of(self.words)
        self.activity = Activity.INACTIVE
        self.active = False
        """Whether `activity` is ACTIVE: asked at every firing."""
        self.native = False
        """Whether a clause runs as machine code, which then works on the buffers and variables."""
        self.context = Context()
        self.variables = Variables(self.world.memory, self.world.cpus)
        self.operations = Operations(self.world, self.variables, kernel_access=True)
        self.buffers: list[PrincipalBuffer] = []
        self.aggregation_buffers: list[AggregationBuffer] = []
        self._enabled = Enabled()
        self.enabling = Enabling(dtrace, self, self._enabled)
        self.search = Search(dtrace)
        self.speculations = Speculations(self.world.memory, self._enabled.record_size, self.world.guest.now)
        builtins = Builtins(self.operations)
        self.machine = DifMachine(self.operations, builtins, Subroutines(self.operations, self.speculations))
        self.functions = DifFunctions(self.machine, self.world.memory, engine)
        self.effects = Effects(self.operations)
        self._dtrace = dtrace
        self.worth_compiling = worth_compiling
        """After how many firings a clause becomes machine code; 0: never."""
        self._handle = self.world.memory.allocate(bytearray(8))
        self.address = self._handle.base
        """What BEGIN, END and ERROR have as arg0."""
        self._settings = Settings()
        self._options = self._settings.values
        self._double_errors = 0
        self._errors_seen = 0
        self._buffer_addresses = words(self.world.cpus)
        self._aggregation_addresses = words(self.world.cpus)
        self.words[ConsumerWord.REGIONS] = address_of(self.world.memory.table)
        self.words[ConsumerWord.GLOBALS] = self.variables.globals.addresses[0]
        self.words[ConsumerWord.LOCALS] = address_of(self.variables.locals.addresses)
        self.words[ConsumerWord.BUFFERS] = address_of(self._buffer_addresses)
        self.words[ConsumerWord.AGGREGATIONS] = address_of(self._aggregation_addresses)

    def ioctl(self, command: int, buffer: bytes) -> Answer:
        """Answer a request of /dev/dtrace/dtrace."""
        return answer(self, command, buffer)

    # Probes

    def probes(self, pattern: ProbeDescription | None = None) -> Sequence[ProbeInfo]:
        """Return the probes that match, by id; None: all."""
        return self.search.probes(pattern)

    def probe_argument(self, probe_id: int, index: int) -> ArgumentDescription | None:
        """Return the type of a probe's argument.

        Raises `DeviceError` EINVAL for an unknown probe.
        """
        return self.search.probe_argument(probe_id, index)

    # Options

    def set_option(self, name: str, value: int) -> None:
        """Set a run-time option.  Raises `DeviceError` EBUSY once tracing has begun."""
        self._must_not_trace()
        self._options[name] = value
        self.enabling.options_changed()

    def option(self, name: str) -> int | None:
        """Return an option as it is in force."""
        return self._options.get(name)

    def options_as_dof(self) -> bytes:
        """Return the options in force as DOF."""
        dof = self._dtrace.dof
        return dof.encode(Program(()), {name: value for name, value in self._options.items() if name in dof.OPTIONS})

    # Enabling

    def _must_not_trace(self) -> None:
        if self.activity is not Activity.INACTIVE:
            raise DeviceError("EBUSY", "tracing has begun")

    def enable(self, dof: bytes) -> Sequence[int]:
        """Enable a program; see `Device.enable`.  Return how many probes each clause matched."""
        self._must_not_trace()
        try:
            decoded = self._dtrace.dof.decode(dof, _DOF_MAX)
        except DofError as error:
            raise DeviceError(error.errno_name, str(error)) from None
        for name, value in decoded.options:
            self.set_option(name, value)
        self.operations.string_size = self._options["strsize"]
        return self.enabling.add(decoded.ecbs, self._options)

    def replicate(self, match: ProbeDescription, create: ProbeDescription) -> None:
        """Enable for `create` what was enabled for `match`."""
        self.enabling.replicate(match, create, self._options)

    def ecb(self, epid: int) -> Ecb:
        """Return an enabling by its EPID."""
        return self._enabled.ecbs[epid - 1]

    # Descriptions

    def enabled_probe(self, epid: int) -> EnabledProbe:
        """Describe an EPID."""
        return self._enabled.enabled_probe(epid)

    def aggregation(self, aggregation_id: int) -> AggregationDescription:
        """Describe an aggregation id."""
        return self._enabled.aggregation(aggregation_id)

    def format(self, number: int) -> str:
        """Return a format string."""
        return self._enabled.format(number)

    # Going and stopping

    def go(self) -> int:
        """Start tracing; BEGIN fires."""
        if self.activity is not Activity.INACTIVE:
            raise DeviceError("EBUSY", "tracing has begun already")
        if "destructive" not in self._options and self.enabling.is_destructive:
            raise DeviceError("EACCES", "destructive actions are not allowed")
        self._allocate()
        self._settings.clamp()
        self._next_clean = self.world.guest.now() + self._options["cleanrate"]
        self._set(Activity.WARMUP)
        for cpu, buffer in enumerate(self.buffers):
            if self._options.get("cpu", cpu) == cpu:
                buffer.activate()
        self._dtrace.fire_meta("BEGIN", self)
        if not self._exited():
            self._set(Activity.ACTIVE)
        return self.world.guest.cpu

    def stop(self) -> int:
        """Stop tracing; END fires."""
        if self.activity not in {Activity.ACTIVE, Activity.DRAINING}:
            raise DeviceError("EINVAL", "tracing has not begun, or has stopped")
        self._set(Activity.COOLDOWN)
        for buffer in self.buffers:
            if isinstance(buffer, FillBuffer):
                buffer.cooling_down, buffer.reserve_end = True, 0
        self._dtrace.fire_meta("END", self)
        self._set(Activity.STOPPED)
        return self.world.guest.cpu

    def _exited(self) -> bool:
        return self.activity is Activity.DRAINING

    def _set(self, activity: Activity) -> None:
        self.activity = activity
        self.active = activity is Activity.ACTIVE
        self.words[ConsumerWord.ACTIVE] = self.active

    def is_meta(self, probe: Probe) -> bool:
        """Return whether a probe is of the `dtrace` provider, which the framework fires itself."""
        return probe.provider is self._dtrace.meta

    def meta(self, probe: Probe, args: tuple[int, ...]) -> bool:
        """Return whether BEGIN, END or ERROR is that of this consumer, and to run."""
        return args[0] == self.address and (probe.name != "BEGIN" or self.activity is Activity.WARMUP)

    def exit(self) -> None:
        """End tracing: what the action of that name does (DTRACEACT_EXIT)."""
        if self.activity in {Activity.WARMUP, Activity.ACTIVE}:
            self._set(Activity.DRAINING)
            self.world.guest.interrupt()
        elif self.activity is not Activity.COOLDOWN:
            self.world.core.flags |= DROP

    def failed(self, ecb: Ecb, buffer: PrincipalBuffer, action: int) -> None:
        """Deal with an error flag: a drop is silent, a fault fires ERROR.

        Action 0 is the predicate.
        """
        core = self.world.core
        if core.flags & DROP:
            return
        buffer.errors += 1
        if ecb.probe is self._dtrace.error:
            self._double_errors += 1
            return
        offset = self.context.fault_offset & WORD_MASK
        # FreeBSD passes the sixth argument on amd64 alone; its other ports lose it.
        self._dtrace.fire_meta("ERROR", self, ecb.epid, action, offset, fault_code(core.flags), core.illval & WORD_MASK)

    def clean_if_due(self) -> None:
        """Do the cleaner's work if cleanrate has passed: free chunks, finish speculations."""
        now = self.world.guest.now()
        if now >= self.words[_NEXT_CLEAN]:
            self._next_clean = now + self._options["cleanrate"]
            self.variables.dynamic.clean()
            self.speculations.clean()

    # Buffers

    def _allocate(self) -> None:
        """Make the buffers, of the sizes that the options and the enablings ask for.

        Raises `DeviceError`.
        """
        world, settings = self.world, self._settings
        settings.decide(self.enabling.clauses, self._enabled.ecbs)
        reserve = settings.reserve(ecb for ecb in self._enabled.ecbs if self.is_meta(ecb.probe))
        settings.fit(reserve)
        self.buffers += [
            settings.principal(world.memory, self._enabled.record_size, world.guest.interrupt, reserve)
            for _ in range(world.cpus)
        ]
        self.speculations.start(self._options["nspec"], self._options["specsize"], self.buffers)
        self.aggregation_buffers += [AggregationBuffer(self._options["aggsize"]) for _ in range(world.cpus)]
        for cpu, buffer in enumerate(self.buffers):
            self._buffer_addresses[cpu] = buffer.address
        self.variables.start(self._options["dynvarsize"])
        if self.native:
            self._share()

    def go_native(self) -> None:
        """Let machine code work on aggregations and dynamic variables, from here on.

        What is stored already stays;  Python goes on to use it by the same functions.
        """
        if not self.native:
            self.native = True
            self._share()

    def _share(self) -> None:
        """Put the memory that machine code shares in the place of Python's own."""
        from trapline.framework.native.aggregate import SharedAggregationBuffer  # noqa: PLC0415  where it is used
        from trapline.framework.native.dynvars import SharedDynamicVariables  # noqa: PLC0415

        for cpu, old in enumerate(self.aggregation_buffers):
            shared = self.aggregation_buffers[cpu] = SharedAggregationBuffer(len(old.data), old)
            self._aggregation_addresses[cpu] = shared.address
        dynamic = self.variables.dynamic = SharedDynamicVariables(self.variables.dynamic)
        self.words[ConsumerWord.DYNAMIC] = dynamic.address

    def buffer_snapshot(self, cpu: int) -> BufferSnapshot:
        """Switch and return a CPU's principal buffer."""
        if not 0 <= cpu < len(self.buffers):
            raise DeviceError("ENOENT", f"there is no buffer of CPU {cpu}")
        buffer = self.buffers[cpu]
        drops, errors = buffer.drops, buffer.errors
        buffer.drops = buffer.errors = 0
        self._errors_seen += errors
        return BufferSnapshot(cpu, buffer.take(), drops, errors, self.world.guest.now())

    def aggregation_snapshot(self, cpu: int) -> AggregationSnapshot:
        """Switch and return a CPU's aggregation buffer."""
        if not 0 <= cpu < len(self.aggregation_buffers):
            raise DeviceError("ENOENT", f"there is no aggregation buffer of CPU {cpu}")
        return AggregationSnapshot(cpu, *self.aggregation_buffers[cpu].take())

    def status(self) -> Status:
        """Return the counters."""
        dynamic, speculations = self.variables.dynamic, self.speculations
        return Status(
            dyndrops=dynamic.drops,
            dyndrops_dirty=dynamic.dirty_drops,
            specdrops=speculations.drops,
            specdrops_busy=speculations.busy,
            specdrops_unavail=speculations.unavailable,
            errors=self._errors_seen + sum(buffer.errors for buffer in self.buffers),
            filled=sum(buffer.full for buffer in self.buffers),
            dblerrors=self._double_errors,
            exiting=self._exited(),
        )

    def close(self) -> None:
        """Disable everything, and give all memory back."""
        self._set(Activity.STOPPED)
        self._dtrace.closed(self)
        self.enabling.clear()
        self.speculations.release()
        self.variables.release()
        for buffer in self.buffers:
            buffer.release()
        self.buffers.clear()
        self.functions.release()
        self.world.memory.release(self._handle)
