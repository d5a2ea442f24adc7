"""One consumer's state: its enablings, buffers and options, and what it is doing (dtrace_state_t).

Source: FreeBSD dtrace.c dtrace_state_create(), dtrace_state_go(), dtrace_state_stop(), dtrace_ecb_create(), the ioctls.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from providers.base import ArgumentDescription
from trapline.dof import DofError, decode
from trapline.framework.actions import Effects
from trapline.framework.aggbuffer import AggregationBuffer
from trapline.framework.buffers import FillBuffer, PrincipalBuffer, RingBuffer, SwitchBuffer
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
    RecordDescription,
    Status,
)
from trapline.framework.dynvars import STRING_SIZE
from trapline.framework.ecb import Clause, Ecb
from trapline.framework.faults import DROP, fault_code
from trapline.framework.ioctl import answer
from trapline.framework.layout import HEADER_SIZE, LayoutError, Placed, lay_out, variable_of
from trapline.framework.machine import Loaded, Machine
from trapline.framework.memory import SLACK, Region
from trapline.framework.operations import Operations
from trapline.framework.program import ActionKind, Difo, EcbDescription, ProbeDescription
from trapline.framework.speculation import Speculations
from trapline.framework.subroutines import Subroutines
from trapline.framework.translate import Translated, translate
from trapline.framework.validate import InvalidDifError, is_destructive, validate
from trapline.framework.variables import Variables
from trapline.framework.world import MASK

if TYPE_CHECKING:
    from providers.base import Provider
    from trapline.framework.dtrace import DTrace
    from trapline.framework.probes import Probe

_SECOND: Final = 1_000_000_000
DEFAULTS: Final = {
    "bufsize": 4 << 20,
    "aggsize": 4 << 20,
    "strsize": STRING_SIZE,
    "nspec": 1,
    "specsize": 32 << 10,
    "dynvarsize": 1 << 20,
    "stackframes": 20,
    "ustackframes": 20,
    "jstackframes": 50,
    "jstackstrsize": 512,
    "cleanrate": 9_900_990,
    "statusrate": _SECOND,
}
_RATES: Final = {"cleanrate": (200_000, 60 * _SECOND), "statusrate": (0, 10 * _SECOND)}
"""Shortest and longest time of a rate."""
_SMALLEST: Final = 8
_LARGEST: Final = 256 << 20
"""Size of a buffer beyond which there is no memory for it."""
_RING, _FILL = 0, 1
"""Values of bufpolicy (DTRACEOPT_BUFPOLICY_*); 2, switch, is the default."""
_MANUAL: Final = 1
"""Value of bufresize: fail rather than make a buffer smaller."""


_DOF_MAX: Final = 1 << 26
"""FreeBSD stops at 256 KiB (kern.dtrace.dof_maxsize), and tells users to raise it; memory is no concern here."""


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

    def __init__(self, dtrace: DTrace) -> None:
        self.world = dtrace.world
        self.activity = Activity.INACTIVE
        self.active = False
        """Whether `activity` is ACTIVE: asked at every firing."""
        self.context = Context()
        self.variables = Variables(self.world.memory, self.world.cpus)
        self.operations = Operations(self.world, self.variables, kernel_access=True)
        self.buffers: list[PrincipalBuffer] = []
        self.aggregation_buffers: list[AggregationBuffer] = []
        self.speculations = Speculations(self.world.memory, self._record_size, self.world.guest.now)
        builtins = Builtins(self.operations)
        self.machine = Machine(self.operations, builtins, Subroutines(self.operations, self.speculations))
        self.effects = Effects(self.operations)
        self._dtrace = dtrace
        self._handle = self.world.memory.allocate(bytearray(_SMALLEST))
        self.address = self._handle.base
        """What BEGIN, END and ERROR have as arg0."""
        self._options = dict(DEFAULTS)
        self._ecbs: list[Ecb] = []
        self._enablings: list[tuple[EcbDescription, Clause]] = []
        self._newest = 0
        self._aggregations: list[tuple[Ecb, Placed]] = []
        self._formats: list[str] = []
        self._strings: dict[bytes, Region] = {}
        self._translated: dict[Difo, Translated] = {}
        self._matched: tuple[ProbeDescription, Sequence[Probe]] = (ProbeDescription(), ())
        """The pattern that was last looked for, and the probes it matches."""
        self._double_errors = 0
        self._errors_seen = 0
        self._next_clean = 0

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

        A search that begins, with number 0, has the providers make what the pattern may mean.  Raises `DeviceError`
        ESRCH when there is no more.
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
        """Return the type of a probe's argument.  Raises `DeviceError` EINVAL for an unknown probe."""
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

    def option(self, name: str) -> int | None:
        """Return an option as it is in force."""
        return self._options.get(name)

    # Enabling

    def enable(self, dof: bytes) -> Sequence[int]:
        """Enable a program; see `Device.enable`."""
        if self.activity is not Activity.INACTIVE:
            raise DeviceError("EBUSY", "tracing has begun")
        try:
            decoded = decode(dof, _DOF_MAX)
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
                if difo is not None:
                    validate(difo, self.variables.declared)
                    self.variables.declare(difo)
            layout = lay_out(description, self._options)
        except (InvalidDifError, LayoutError) as error:
            raise DeviceError("EINVAL", str(error)) from None
        return Clause(description, layout, self)

    def _link(self, clause: Clause, probes: Sequence[Probe]) -> int:
        """Put a clause at probes, and return how many those are."""
        aggregating = list(clause.aggregating)
        for probe in probes:
            first = len(self._aggregations) + 1
            ecb = clause.at(len(self._ecbs) + 1, probe, tuple(range(first, first + len(aggregating))))
            self._aggregations += [(ecb, placed) for placed in aggregating]
            self._ecbs.append(ecb)
            self._dtrace.link(probe, ecb)
        return len(probes)

    def translate(self, difo: Difo) -> Translated:
        """Return a DIF object as a function; equal objects share one."""
        found = self._translated.get(difo)
        if found is None:
            strings = self._strings.get(difo.strings)
            if strings is None:
                data = bytearray(difo.strings + bytes(SLACK))
                strings = self._strings[difo.strings] = self.world.memory.allocate(data)
            found = self._translated[difo] = translate(self.machine, Loaded(difo, strings.base))
        return found

    # Descriptions

    def enabled_probe(self, epid: int) -> EnabledProbe:
        """Describe an EPID."""
        if not 0 < epid <= len(self._ecbs):
            raise DeviceError("EINVAL", f"there is no enabled probe {epid}")
        ecb = self._ecbs[epid - 1]
        layout = ecb.clause.layout
        records = tuple(
            self._describe(placed, 0) for placed in layout.actions if not placed.in_tuple and placed.aggregating is None
        )
        return EnabledProbe(epid, ecb.probe.id, layout.size, records)

    def aggregation(self, aggregation_id: int) -> AggregationDescription:
        """Describe an aggregation id."""
        if not 0 < aggregation_id <= len(self._aggregations):
            raise DeviceError("EINVAL", f"there is no aggregation {aggregation_id}")
        ecb, placed = self._aggregations[aggregation_id - 1]
        assert placed.aggregating is not None
        actions, base = ecb.clause.layout.actions, placed.aggregating.base
        last = actions.index(placed)
        parts = actions[placed.aggregating.first : last + 1]
        return AggregationDescription(
            aggregation_id,
            variable_of(parts[0]),
            ecb.epid,
            placed.offset - base + placed.size,
            tuple(self._describe(part, base) for part in parts),
        )

    def _describe(self, placed: Placed, base: int) -> RecordDescription:
        action = placed.action
        return RecordDescription(
            action.kind,
            placed.size,
            placed.offset - base,
            placed.alignment,
            self._format_number(action.format),
            placed.argument,
            action.statement,
        )

    def _format_number(self, text: str) -> int:
        """Return the number of a format string, which is remembered; 0 for none."""
        if not text:
            return 0
        if text not in self._formats:
            self._formats.append(text)
        return self._formats.index(text) + 1

    def format(self, number: int) -> str:
        """Return a format string."""
        if not 0 < number <= len(self._formats):
            raise DeviceError("EINVAL", f"there is no format {number}")
        return self._formats[number - 1]

    # Going and stopping

    def go(self) -> int:
        """Start tracing; BEGIN fires."""
        if self.activity is not Activity.INACTIVE:
            raise DeviceError("EBUSY", "tracing has begun already")
        if "destructive" not in self._options and any(map(_is_destructive, self._ecbs)):
            raise DeviceError("EACCES", "destructive actions are not allowed")
        self._allocate()
        for rate, (shortest, longest) in _RATES.items():
            self._options[rate] = min(max(self._options[rate], shortest), longest)
        self._next_clean = self.world.guest.now() + self._options["cleanrate"]
        self._set(Activity.WARMUP)
        for buffer in self.buffers:
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

    def is_meta(self, probe: Probe) -> bool:
        """Tell whether a probe is one of the `dtrace` provider, which the framework fires itself."""
        return probe.provider is self._dtrace.meta

    def meta(self, probe: Probe, args: tuple[int, ...]) -> bool:
        """Tell whether BEGIN, END or ERROR is that of this consumer, and to run."""
        return args[0] == self.address and (probe.name != "BEGIN" or self.activity is Activity.WARMUP)

    def exit(self) -> None:
        """End tracing: what the action of that name does (DTRACEACT_EXIT)."""
        if self.activity in {Activity.WARMUP, Activity.ACTIVE}:
            self._set(Activity.DRAINING)
            self.world.guest.interrupt()
        elif self.activity is not Activity.COOLDOWN:
            self.world.core.flags |= DROP

    def failed(self, ecb: Ecb, buffer: PrincipalBuffer, action: int) -> None:
        """Deal with an error flag: a drop is silent, a fault fires ERROR; action 0 is the predicate."""
        core = self.world.core
        if core.flags & DROP:
            return
        buffer.errors += 1
        if ecb.probe is self._dtrace.error:
            self._double_errors += 1
            return
        offset = self.context.fault_offset & MASK
        # FreeBSD passes the sixth argument on amd64 alone; its other ports lose it.
        self._dtrace.fire_meta("ERROR", self, ecb.epid, action, offset, fault_code(core.flags), core.illval & MASK)

    def clean_if_due(self) -> None:
        """Do what the kernel's cleaner does every cleanrate: free what was freed, finish speculations."""
        now = self.world.guest.now()
        if now >= self._next_clean:
            self._next_clean = now + self._options["cleanrate"]
            self.variables.dynamic.clean()
            self.speculations.clean()

    # Buffers

    def _allocate(self) -> None:
        """Make the buffers, of the sizes that the options and the enablings ask for.  Raises `DeviceError`."""
        options, cpus = self._options, self.world.cpus
        kinds = {placed.action.kind for ecb in self._ecbs for placed in ecb.clause.layout.actions}
        clauses = [clause for _, clause in self._enablings]
        if not any(True for clause in clauses for _ in clause.aggregating):
            options["aggsize"] = 0
        else:
            largest = max(clause.layout.needed for clause in clauses)
            options["bufsize"] = max(options["bufsize"], largest)
        if ActionKind.SPECULATE not in kinds:
            options["specsize"] = 0
        reserve = sum(
            ecb.clause.layout.needed + ecb.clause.layout.alignment
            for ecb in self._ecbs
            if self.is_meta(ecb.probe) and ecb.probe.name == "END"
        )
        fills = options.get("bufpolicy") == _FILL
        self._fit("bufsize", reserve if fills else 0)
        self.buffers += [self._principal(reserve) for _ in range(cpus)]
        if options["specsize"]:
            self._fit("specsize", 0)
        self.speculations.start(options["nspec"], options["specsize"], self.buffers)
        if options["aggsize"]:
            self._fit("aggsize", 0)
        self.aggregation_buffers += [AggregationBuffer(options["aggsize"]) for _ in range(cpus)]
        self._fit("dynvarsize", 0)
        self.variables.start(options["dynvarsize"])

    def _fit(self, name: str, reserve: int) -> None:
        """Make a size one there is memory for; with manual resizing that is an error instead."""
        size = self._options[name]
        if size < _SMALLEST and name != "dynvarsize":
            raise DeviceError("ENOSPC", f"{name} of {size} bytes is too small")
        if size < reserve:
            raise DeviceError("E2BIG", f"{name} of {size} bytes does not hold what END may record")
        while size > _LARGEST:
            if self._options.get("bufresize") == _MANUAL:
                raise DeviceError("ENOMEM", f"no memory for {name} of {size} bytes")
            size >>= 1
        self._options[name] = size

    def _principal(self, reserve: int) -> PrincipalBuffer:
        memory, size = self.world.memory, self._options["bufsize"]
        policy = self._options.get("bufpolicy")
        if policy == _RING:
            return RingBuffer(memory, size, self._record_size)
        if policy == _FILL:
            buffer = FillBuffer(memory, size, self.world.guest.interrupt)
            buffer.reserve_end = reserve
            return buffer
        return SwitchBuffer(memory, size)

    def _record_size(self, epid: int) -> int:
        return self._ecbs[epid - 1].clause.layout.size or HEADER_SIZE

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
        for ecb in self._ecbs:
            self._dtrace.unlink(ecb.probe, ecb)
        self._ecbs.clear()
        self._enablings.clear()
        self._aggregations.clear()
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
