"""One consumer's state: its enablings, buffers and options, and what it is doing (dtrace_state_t).

Source: FreeBSD dtrace.c dtrace_state_create(), dtrace_state_go(), dtrace_state_stop(),
dtrace_ecb_create(), the ioctls.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from enum import IntEnum
from functools import partial
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
from trapline.framework.ecb import Clause, Ecb, Form
from trapline.framework.enabled import Enabled
from trapline.framework.engines import ProgramEngine
from trapline.framework.faults import DROP, fault_code
from trapline.framework.ioctl import answer
from trapline.framework.layout import LayoutError, lay_out
from trapline.framework.machine import DifMachine, Loaded
from trapline.framework.memory import SLACK, Region
from trapline.framework.operations import Operations
from trapline.framework.program import ActionDescription, Difo, EcbDescription, ProbeDescription, Program
from trapline.framework.settings import Settings
from trapline.framework.speculation import Speculations
from trapline.framework.subroutines import Subroutines
from trapline.framework.translate import Translated, translate
from trapline.framework.validate import InvalidDifError, is_destructive, validate
from trapline.framework.variables import Variables

if TYPE_CHECKING:
    from providers.base import Provider
    from trapline.framework.dtrace import DTrace
    from trapline.framework.native.consumer import NativeConsumer
    from trapline.framework.probes import Probe

# FreeBSD stops at 256 KiB (kern.dtrace.dof_maxsize), and tells users to raise it; memory is no concern here.
_DOF_MAX: Final = 1 << 26
_NEXT_CLEAN: Final = int(ConsumerWord.NEXT_CLEAN)


class Activity(IntEnum):
    """What a consumer is doing (DTRACE_ACTIVITY_*)."""

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
        self.speculations = Speculations(self.world.memory, self._enabled.record_size, self.world.guest.now)
        builtins = Builtins(self.operations)
        self.machine = DifMachine(self.operations, builtins, Subroutines(self.operations, self.speculations))
        self.effects = Effects(self.operations)
        self._dtrace = dtrace
        self.worth_compiling = worth_compiling
        """After how many firings a clause becomes machine code; 0: never."""
        self._engine = engine
        self._handle = self.world.memory.allocate(bytearray(8))
        self.address = self._handle.base
        """What BEGIN, END and ERROR have as arg0."""
        self._settings = Settings()
        self._options = self._settings.values
        self._enablings: list[tuple[EcbDescription, Clause]] = []
        self._valid: set[Difo] = set()
        """The DIF objects that were checked, and whose variables are declared."""
        self._forms: dict[tuple[Difo | None, tuple[ActionDescription, ...]], Form] = {}
        """What clauses compile to, by predicate and actions."""
        self._native: NativeConsumer | None = None
        self._newest = 0
        self._strings: dict[bytes, Region] = {}
        self._translated: dict[Difo, Translated] = {}
        self._matched: tuple[ProbeDescription, Sequence[Probe]] = (ProbeDescription(), ())
        """The pattern that was last looked for, and the probes it matches."""
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

    def provider(self, name: str) -> Provider:
        """Return a provider.  Raises `DeviceError` ESRCH."""
        found = self._dtrace.provider(name)
        if found is None:
            raise DeviceError("ESRCH", f"there is no provider {name}")
        return found

    def next_probe(self, pattern: ProbeDescription | None, number: int) -> ProbeInfo:
        """Return the first probe that matches (None: any) with a number of at least `number`.

        A search that begins, with number 0, has the providers make what the pattern may mean.
        Raises `DeviceError` ESRCH when there is no more.
        """
        found = self._from(number) if pattern is None else self._matching_from(pattern, number)
        if found is None:
            raise DeviceError("ESRCH", "there is no more probe")
        return ProbeInfo(found.id, found.description, found.provider.attributes)

    def _from(self, number: int) -> Probe | None:
        table = self._dtrace.table
        found = (table.get(place) for place in range(number, table.newest + 1))
        return next((probe for probe in found if probe is not None), None)

    def _matching_from(self, pattern: ProbeDescription, number: int) -> Probe | None:
        if not number or self._matched[0] != pattern:
            self._matched = pattern, self._dtrace.match(pattern)
        probes = self._matched[1]
        place = bisect_left(probes, number, key=lambda probe: probe.id)
        return probes[place] if place < len(probes) else None

    def probes(self, pattern: ProbeDescription | None = None) -> Sequence[ProbeInfo]:
        """Return the probes that match, by id; None: all."""
        found = self._dtrace.table if pattern is None else self._dtrace.match(pattern)
        return [ProbeInfo(probe.id, probe.description, probe.provider.attributes) for probe in found]

    def probe_argument(self, probe_id: int, index: int) -> ArgumentDescription | None:
        """Return the type of a probe's argument.

        Raises `DeviceError` EINVAL for an unknown probe.
        """
        probe = self._dtrace.table.get(probe_id)
        if probe is None:
            raise DeviceError("EINVAL", f"there is no probe {probe_id}")
        return probe.provider.argument_description(probe.id, probe.arg, index)

    # Options

    def set_option(self, name: str, value: int) -> None:
        """Set a run-time option.  Raises `DeviceError` EBUSY once tracing has begun."""
        if self.activity is not Activity.INACTIVE:
            raise DeviceError("EBUSY", "tracing has begun")
        self._options[name] = value
        self._forms.clear()

    def option(self, name: str) -> int | None:
        """Return an option as it is in force."""
        return self._options.get(name)

    def options_as_dof(self) -> bytes:
        """Return the options in force as DOF."""
        dof = self._dtrace.dof
        return dof.encode(Program(()), {name: value for name, value in self._options.items() if name in dof.OPTIONS})

    # Enabling

    def enable(self, dof: bytes) -> Sequence[int]:
        """Enable a program; see `Device.enable`."""
        if self.activity is not Activity.INACTIVE:
            raise DeviceError("EBUSY", "tracing has begun")
        try:
            decoded = self._dtrace.dof.decode(dof, _DOF_MAX)
        except DofError as error:
            raise DeviceError(error.errno_name, str(error)) from None
        for name, value in decoded.options:
            self.set_option(name, value)
        self.operations.string_size = self._options["strsize"]
        clauses = [self._prepare(description) for description in decoded.ecbs]
        enablings = list(zip(decoded.ecbs, clauses, strict=True))
        matched = [self._link(clause, self._dtrace.match(description.probe)) for description, clause in enablings]
        self._enablings += enablings
        self._newest = self._dtrace.table.newest
        return matched

    def replicate(self, match: ProbeDescription, create: ProbeDescription) -> None:
        """Enable for `create` what was enabled for `match` (dtrace_enabling_replicate)."""
        for description, _clause in list(self._enablings):
            if description.probe == match:
                copy = replace(description, probe=create)
                clause = self._prepare(copy)
                self._link(clause, self._dtrace.match(create))
                self._enablings.append((copy, clause))

    def match_new(self) -> None:
        """Put the clauses at the probes that were created since (dtrace_enabling_match)."""
        since, self._newest = self._newest, self._dtrace.table.newest
        for description, clause in self._enablings:
            self._link(clause, [probe for probe in self._dtrace.table.match(description.probe) if probe.id > since])

    def _prepare(self, description: EcbDescription) -> Clause:
        """Check a clause and compile it.  Raises `DeviceError` EINVAL."""
        objects = [description.predicate, *(action.difo for action in description.actions)]
        try:
            for difo in objects:
                if difo is not None and difo not in self._valid:
                    validate(difo, self.variables.declared)
                    self.variables.declare(difo)
                    self._valid.add(difo)
            layout = lay_out(description, self._options)
        except (InvalidDifError, LayoutError) as error:
            raise DeviceError("EINVAL", str(error)) from None
        # What a clause does is the same for all its descriptions; only the numbers of the statements are not.
        doing = description.predicate, tuple(replace(action, statement=0) for action in description.actions)
        if doing not in self._forms:
            self._forms[doing] = Form(description, layout, self)
        return Clause(description, layout, self, self._forms[doing])

    def _link(self, clause: Clause, probes: Sequence[Probe]) -> int:
        """Put a clause at probes, and return how many those are."""
        for probe in probes:
            self._dtrace.link(probe, self._enabled.add(clause, probe))
        return len(probes)

    def translate(self, difo: Difo) -> Translated:
        """Return a DIF object as a function; equal objects share one."""
        found = self._translated.get(difo)
        if found is None:
            loaded = Loaded(difo, self.string_table(difo))
            found = self._translated[difo] = self._as_function(loaded)
        return found

    def _as_function(self, loaded: Loaded) -> Translated:
        if self._engine is ProgramEngine.REFERENCE:
            return partial(self.machine.run, loaded)
        return translate(self.machine, loaded)

    def string_table(self, difo: Difo) -> int:
        """Return the address of a DIF object's strings; equal tables share one."""
        strings = self._strings.get(difo.strings)
        if strings is None:
            data = bytearray(difo.strings + bytes(SLACK))
            strings = self._strings[difo.strings] = self.world.memory.allocate(data)
        return strings.base

    # Machine code

    def make_native(self, form: Form) -> None:
        """Let machine code run the enablings of clauses that have fired often enough."""
        clause = next(clause for _, clause in self._enablings if clause.form is form)
        if self._native is None:
            from trapline.framework.native.consumer import NativeConsumer  # noqa: PLC0415  few runs need it

            self._native = NativeConsumer(self)
        form.native = self._native.compile(clause)
        if form.native is None:
            return
        changed = {}
        for ecb in self._enabled.ecbs:
            if ecb.clause.form is form and not self.is_meta(ecb.probe):
                ecb.run = form.native.run(ecb)
                changed[ecb.probe.id] = ecb.probe
        for probe in changed.values():
            self._dtrace.relink(probe)

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
        if "destructive" not in self._options and any(map(_is_destructive, self._enabled.ecbs)):
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
        settings.decide([clause for _, clause in self._enablings], self._enabled.ecbs)
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
        self._dtrace.unlink(self._enabled.ecbs)
        self._enablings.clear()
        self._forms.clear()
        self._enabled.clear()
        self.speculations.release()
        self.variables.release()
        for buffer in self.buffers:
            buffer.release()
        self.buffers.clear()
        for region in (*self._strings.values(), self._handle):
            self.world.memory.release(region)
        self._strings.clear()


def _is_destructive(ecb: Ecb) -> bool:
    actions = [placed.action for placed in ecb.clause.layout.actions]
    objects = [ecb.clause.predicate, *(action.difo for action in actions)]
    return any(action.kind.is_destructive for action in actions) or any(
        difo is not None and is_destructive(difo) for difo in objects
    )
