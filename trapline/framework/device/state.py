"""One consumer's state: its enablings, buffers and options, and requests of it (dtrace_state_t).

Source: FreeBSD dtrace.c dtrace_state_create(), dtrace_state_go(), dtrace_state_stop(),
the ioctls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from providers.base import ArgumentDescription
from providers.dof.sections import DofError
from trapline.framework.base.codec import ProgramFormat
from trapline.framework.base.device import (
    AggregationDescription,
    AggregationSnapshot,
    BufferSnapshot,
    DeviceError,
    EnabledProbe,
    ProbeInfo,
    Status,
)
from trapline.framework.base.program import ProbeDescription, Program
from trapline.framework.device.enabling import Enabling
from trapline.framework.probe.registry import Registry
from trapline.framework.probe.runtime import Activity, Runtime
from trapline.framework.probe.search import Search

# FreeBSD stops at 256 KiB (kern.dtrace.dof_maxsize), and tells users to raise it; memory is no concern here.
_DOF_MAX: Final = 1 << 26


class ConsumerState:
    """One consumer; its requests are answered by `trapline.framework.device.ioctl.OpenDevice`."""

    def __init__(self, registry: Registry, dof: ProgramFormat, worth_compiling: int) -> None:
        self.runtime = Runtime(registry, worth_compiling)
        """The runtime of its clauses."""
        self.enabling = Enabling(registry, self.runtime)
        self.search = Search(registry)
        self._registry = registry
        self._dof = dof
        self._enabled = self.runtime.enabled
        self._settings = self.runtime.settings
        self._options = self._settings.values
        self._errors_seen = 0
        registry.watch(self.enabling.match_new)

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
        known = self._dof.OPTIONS
        return self._dof.encode(Program(()), {name: value for name, value in self._options.items() if name in known})

    # Enabling

    def _must_not_trace(self) -> None:
        if self.runtime.activity is not Activity.INACTIVE:
            raise DeviceError("EBUSY", "tracing has begun")

    def enable(self, dof: bytes) -> Sequence[int]:
        """Enable a program; see `Device.enable`.  Return how many probes each clause matched."""
        self._must_not_trace()
        try:
            decoded = self._dof.decode(dof, _DOF_MAX)
        except DofError as error:
            raise DeviceError(error.errno_name, str(error)) from None
        for name, value in decoded.options:
            self.set_option(name, value)
        self.runtime.operations.string_size = self._options["strsize"]
        return self.enabling.add(decoded.ecbs, self._options)

    def replicate(self, match: ProbeDescription, create: ProbeDescription) -> None:
        """Enable for `create` what was enabled for `match`."""
        self.enabling.replicate(match, create, self._options)

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
        runtime = self.runtime
        if runtime.activity is not Activity.INACTIVE:
            raise DeviceError("EBUSY", "tracing has begun already")
        if "destructive" not in self._options and self.enabling.is_destructive:
            raise DeviceError("EACCES", "destructive actions are not allowed")
        self._settings.decide(self.enabling.clauses, self._enabled.ecbs)
        runtime.start()
        runtime.fire_meta("BEGIN")
        if not runtime.exiting:
            runtime.set(Activity.ACTIVE)
        return runtime.world.guest.cpu

    def stop(self) -> int:
        """Stop tracing; END fires."""
        runtime = self.runtime
        if runtime.activity not in {Activity.ACTIVE, Activity.DRAINING}:
            raise DeviceError("EINVAL", "tracing has not begun, or has stopped")
        runtime.cool_down()
        runtime.fire_meta("END")
        runtime.set(Activity.STOPPED)
        return runtime.world.guest.cpu

    # Buffers

    def buffer_snapshot(self, cpu: int) -> BufferSnapshot:
        """Switch and return a CPU's principal buffer."""
        if not 0 <= cpu < len(self.runtime.buffers):
            raise DeviceError("ENOENT", f"there is no buffer of CPU {cpu}")
        buffer = self.runtime.buffers[cpu]
        drops, errors = buffer.drops, buffer.errors
        buffer.drops = buffer.errors = 0
        self._errors_seen += errors
        return BufferSnapshot(cpu, buffer.take(), drops, errors, self.runtime.world.guest.now())

    def aggregation_snapshot(self, cpu: int) -> AggregationSnapshot:
        """Switch and return a CPU's aggregation buffer."""
        if not 0 <= cpu < len(self.runtime.aggregation_buffers):
            raise DeviceError("ENOENT", f"there is no aggregation buffer of CPU {cpu}")
        return AggregationSnapshot(cpu, *self.runtime.aggregation_buffers[cpu].take())

    def status(self) -> Status:
        """Return the counters."""
        dynamic, speculations = self.runtime.variables.dynamic, self.runtime.speculations
        return Status(
            dyndrops=dynamic.drops,
            dyndrops_dirty=dynamic.dirty_drops,
            specdrops=speculations.drops,
            specdrops_busy=speculations.busy,
            specdrops_unavail=speculations.unavailable,
            errors=self._errors_seen + sum(buffer.errors for buffer in self.runtime.buffers),
            filled=sum(buffer.full for buffer in self.runtime.buffers),
            dblerrors=self.runtime.double_errors,
            exiting=self.runtime.exiting,
        )

    def close(self) -> None:
        """Disable everything, and give all memory back."""
        self.runtime.set(Activity.STOPPED)
        self._registry.unwatch(self.enabling.match_new)
        self.enabling.clear()
        self.runtime.release()
