"""A trace from beginning to end, in libdtrace's steps: enable, go, sleep and work, stop.

Time is the guest's.  To sleep is to let the guest run up to the next event: a buffer switch
(switchrate), an aggregation snapshot (aggrate) or a check of the status (statusrate).

Source: FreeBSD libdtrace dt_work.c (dtrace_sleep, dtrace_status, dtrace_go, dtrace_stop,
dtrace_work).
"""

from __future__ import annotations

from enum import Enum
from itertools import count
from typing import TYPE_CHECKING, Final

from emu.guest.base import RunState
from trapline.consumer.aggregations.aggregate import Aggregate
from trapline.consumer.errors import ConsumerError, enabling_error, starting_error
from trapline.consumer.records.consume import Consumer, Handlers
from trapline.consumer.records.decode import decode, merge
from trapline.consumer.records.faults import ERROR_PROGRAM, Drop, DropKind, status_drops
from trapline.consumer.records.report import Report
from trapline.consumer.text.symbols import Symbols
from trapline.dof import encode
from trapline.framework.base.device import AggregationDescription, DeviceError, Status
from trapline.framework.base.program import Program
from trapline.options import NANOSECONDS, BufferPolicy, Options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emu.guest.base import Guest
    from trapline.consumer.output import Output
    from trapline.framework.base.device import Device

# Default of aggrate, statusrate and switchrate.
_RATE: Final = NANOSECONDS
# The shortest run of the guest in nanoseconds, so that a rate of 0 does not stop time.
_SHORTEST_SLEEP: Final = 100_000
_SIZES: Final = {
    "bufsize": "buffer size",
    "aggsize": "aggregation size",
    "specsize": "speculation size",
    "dynvarsize": "dynamic variable size",
}
_RATES: Final = {"cleanrate": "cleaning rate", "statusrate": "status rate"}
# Options the framework does not know.
_CONSUMERS_OWN: Final = frozenset({"timeout"})


class Work(Enum):
    """The result of `Session.work` (DTRACE_WORKSTATUS_*)."""

    OKAY = "tracing continues"
    DONE = "tracing has stopped and everything is consumed"


class Session:
    """One trace of one guest through one device."""

    def __init__(
        self,
        device: Device,
        guest: Guest,
        output: Output,
        handlers: Handlers,
        options: Options | None = None,
    ) -> None:
        self.device = device
        self.guest = guest
        self.output = output
        self.options = Options() if options is None else options
        self.symbols = Symbols(guest)
        self.aggregate = Aggregate(self._aggregation, self.symbols, per_cpu=self.options.is_set("aggpercpu"))
        self.report = Report(self.aggregate, self.symbols, self.options)
        self.consumer = Consumer(device, self.symbols, self.options, self.aggregate, self.report, output, handlers)
        self.aggregation_names: dict[int, str] = {}
        """Names of the aggregation variables by id."""
        self._handlers = handlers
        self._descriptions: dict[int, AggregationDescription] = {}
        self._active = self._stopped = False
        self._status = Status()
        self._last: dict[str, int] = {}
        self._deadline: int | None = None

    @property
    def status(self) -> int | None:
        """Argument of the exit() that was consumed; None: there was none."""
        return self.consumer.actions.status

    @property
    def stopped(self) -> bool:
        """Whether tracing has stopped."""
        return self._stopped

    def enable(self, program: Program) -> int:
        """Enable a program and return how many probes it matched.

        Raises `ConsumerError`; nothing is enabled then.
        """
        matched = self.enable_dof(encode(program))
        self.aggregation_names.update(enumerate(program.aggregations, 1))
        return matched

    def enable_dof(self, dof: bytes) -> int:
        """Enable a program that is DOF already.

        Raises `ConsumerError`; nothing is enabled then.
        """
        self._push_options()
        try:
            return self.device.enable(dof)
        except DeviceError as error:
            raise enabling_error(error) from error

    def go(self) -> list[str]:
        """Start tracing; BEGIN fires.

        Returns messages about options that the framework has adjusted.

        Raises `ConsumerError`.
        """
        self._push_options()
        asked = {name: self.options.number(name, -1) for name in (*_SIZES, *_RATES)}
        try:
            # After the user's programs, as libdtrace does, so that their EPIDs count from 1.
            self.device.enable(encode(ERROR_PROGRAM))
            self.device.go()
        except DeviceError as error:
            raise starting_error(error) from error
        self._active = True
        if self.options.is_set("timeout"):
            self._deadline = self.guest.now() + self.options.number("timeout")
        return list(self._adjustments(asked))

    def sleep(self) -> RunState:
        """Let the guest run up to the next event.

        It returns earlier if the guest is interrupted or ends.
        """
        if not self._last:
            # No data were read yet: BEGIN may have printed, or ended the trace.
            return RunState.RUNNING
        return self.guest.run(self.next_work())

    def next_work(self) -> int:
        """Return the time of the next event, up to which the guest may run."""
        due = max(self._next_event(), self.guest.now() + _SHORTEST_SLEEP)
        return due if self._deadline is None else min(due, self._deadline)

    def consume_now(self) -> None:
        """Consume the available data, whether or not an event is due.  Raises `ConsumerError`."""
        self._snapshot_aggregations()
        self._consume()

    def timed_out(self) -> bool:
        """Return whether the time of option timeout has passed."""
        return self._deadline is not None and self.guest.now() >= self._deadline

    def stop(self) -> None:
        """Stop tracing; END fires.  The recorded data are still to be consumed by `work`.

        Raises `ConsumerError`.
        """
        if self._stopped or not self._active:
            return
        try:
            self.device.stop()
        except DeviceError as error:
            raise ConsumerError(f"couldn't stop tracing: {error}") from error
        self._stopped = True
        self._look()

    def work(self) -> Work:
        """Check the status, and consume the available data.

        An exit() is noticed at once, unless option statusrate sets the interval of checks.  Ring
        and fill buffers are consumed once tracing has stopped.  Raises `ConsumerError`.
        """
        if not self._stopped and (self._due("statusrate") or not self.options.is_set("statusrate")):
            self._look()
            if self._status.exiting or self._status.filled:
                self.stop()
        if not self._stopped and self._policy() is not BufferPolicy.SWITCH:
            return Work.OKAY
        if self._due("aggrate"):
            self._snapshot_aggregations()
        if self._due("switchrate"):
            self._consume()
        return Work.DONE if self._stopped else Work.OKAY

    def run(self) -> None:
        """Sleep and work until the program exits, the guest ends or the time is over.

        END is consumed then.
        """
        finished = False
        while not self._stopped:
            finished = self.sleep() is RunState.FINISHED
            if finished or self.timed_out():
                self.stop()
            self.work()

    def close(self) -> None:
        """Disable everything; tracepoints are restored.  Output of freopen() is closed."""
        self.output.restore()
        self.device.close()

    def _policy(self) -> BufferPolicy:
        return BufferPolicy(self.options.number("bufpolicy", BufferPolicy.SWITCH.value))

    def _next_event(self) -> int:
        switching = self._policy() is BufferPolicy.SWITCH
        rates = ["statusrate", *(("aggrate", "switchrate") if switching else ())]
        return min(self._last.get(rate, 0) + self.options.number(rate, _RATE) for rate in rates)

    def _due(self, rate: str) -> bool:
        """Return whether an event is due, and note that it happens.

        After the end every event is due.

        Events keep their interval, however late the guest returns: an event whose interval is a
        multiple of another's always coincides with it.
        """
        now, interval = self.guest.now(), self.options.number(rate, _RATE)
        last = self._last.setdefault(rate, now - interval)
        if not self._stopped and now < last + interval:
            return False
        self._last[rate] = last + interval
        return True

    def _look(self) -> None:
        """Read the counters and report the drops since the last time."""
        old, self._status = self._status, self.device.status()
        if self._status.killed and not old.killed:
            raise ConsumerError("Abort due to systemic unresponsiveness")
        for drop in status_drops(old, self._status):
            self._handlers.drop(drop)

    def _snapshot_aggregations(self) -> None:
        for cpu in count():
            try:
                snapshot = self.device.aggregation_snapshot(cpu)
            except DeviceError:
                break
            if snapshot.drops:
                self._handlers.drop(Drop(DropKind.AGGREGATION, snapshot.drops, cpu))
            self.aggregate.add(snapshot)

    def _consume(self) -> None:
        snapshots = []
        for cpu in count():
            try:
                snapshots.append(self.device.buffer_snapshot(cpu))
            except DeviceError:
                break
        buffers = [decode(snapshot, lambda epid: self.consumer.plan(epid).size) for snapshot in snapshots]
        temporal = self.options.is_set("temporal")
        self.consumer.consume(merge(buffers, self.consumer.turn, temporal=temporal))
        for snapshot in snapshots:
            if snapshot.drops:
                self._handlers.drop(Drop(DropKind.PRINCIPAL, snapshot.drops, snapshot.cpu))
        self.output.flush()

    def _aggregation(self, number: int) -> AggregationDescription:
        found = self._descriptions.get(number)
        if found is None:
            found = self._descriptions[number] = self.device.aggregation(number)
        return found

    def _push_options(self) -> None:
        """Hand the run-time options to the framework."""
        wanted = {name: value for name, value in self.options.run_time().items() if name not in _CONSUMERS_OWN}
        if not wanted:
            return
        try:
            self.device.enable(encode(Program(()), wanted))
        except DeviceError as error:
            raise ConsumerError(f"failed to set options: {error}") from error

    def _adjustments(self, asked: dict[str, int]) -> Iterator[str]:
        """Return messages about lowered sizes and changed rates (dtrace.c go())."""
        in_force = self.device.in_force()
        for name, title in _SIZES.items():
            now = in_force.get(name)
            if asked[name] >= 0 and now and now < asked[name] - 8:
                yield f"{title} lowered to {_size_text(now)}"
        for name, title in _RATES.items():
            now = in_force.get(name)
            if asked[name] >= 0 and now and now != asked[name]:
                yield f"{title} {'reduced' if now > asked[name] else 'increased'} to {_rate_text(now)}"


def _size_text(size: int) -> str:
    """Return a size in the largest unit that is not above it, if it is whole in it, else in bytes."""
    power = (size.bit_length() - 1) // 10
    if not power or size & (1 << 10 * power) - 1:
        return f"{size} bytes"
    return f"{size >> 10 * power}{'kmgtpe'[power - 1]}"


def _rate_text(rate: int) -> str:
    if rate <= NANOSECONDS and NANOSECONDS % rate == 0:
        return f"{NANOSECONDS // rate} hz"
    if rate % NANOSECONDS == 0:
        return f"once every {rate // NANOSECONDS} seconds"
    return f"once every {rate} nanoseconds"
