"""Running lockstat's program over a guest, and reading the gathered data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trapline.consumer.aggregations.aggregate import Entry, plain_value
from trapline.consumer.loop import Interrupts
from trapline.consumer.records.values import value_reader
from trapline.libdtrace import Handle, Work, dtrace_open
from trapline.lockstat.program import AVERAGE, HISTOGRAM
from trapline.lockstat.records import LockRecord
from trapline.options import OptionError

if TYPE_CHECKING:
    from trapline.consumer.records.statements import Firing
    from trapline.machine.kernel_machine import KernelMachine

_SMALLEST: Final = 16 << 10
_LARGEST: Final = 32 << 20
# The assumed size in bytes of a record without histogram and stack.
_RECORD: Final = 64


class Gathered(NamedTuple):
    """The result of a run."""

    records: list[LockRecord]
    elapsed: int
    """The guest's time in nanoseconds."""
    dropped: bool
    """Whether records were lost because the buffer was full."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of the recorded data."""

    records: int
    histogram: bool
    stack: int

    @property
    def size(self) -> int:
        """Bytes of buffer, for twice the records (lockstat.c main())."""
        one = _RECORD + 8 * self.stack + (64 * 4 if self.histogram else 0)
        return min(max(self.records * one * 2, _SMALLEST), _LARGEST)


def gather(
    machine: KernelMachine, text: str, limits: Limits, options: Sequence[tuple[str, str | None]], *, trace: bool
) -> Gathered:
    """Run a program until the guest ends, or the user interrupts it.

    Raises `trapline.d.errors.CompileError`, `trapline.consumer.errors.ConsumerError`,
    `trapline.options.OptionError` and `emu.guest.base.GuestError`.
    """
    traced: list[LockRecord] = []
    mask = machine.guest.isa.address_mask

    def consume(firing: Firing) -> bool:
        if len(traced) < limits.records:
            traced.append(_traced(firing, mask))
        return False

    with dtrace_open(
        machine.guest, machine.dtrace, foreign=machine.names, consume=consume if trace else None
    ) as handle:
        # The teaching kernel has no reader/writer locks and no spinning: these probes do not exist.
        handle.setopt("zdefs")
        handle.setopt("bufsize" if trace else "aggsize", str(limits.size))
        if not trace:
            handle.setopt("bufsize", "4k")
            handle.setopt("dynvarsize", "1m")
        for name, value in options:
            try:
                handle.setopt(name, value)
            except OptionError as error:
                raise OptionError(f"failed to set -x {name}: {error}") from None
        handle.program_exec(handle.strcompile(text))
        start = machine.guest.now()
        handle.go()
        with Interrupts(lambda _count: machine.guest.interrupt()) as interrupts:
            while handle.work() is not Work.DONE:
                if interrupts.count:
                    handle.stop()
                else:
                    handle.sleep()
        elapsed = machine.guest.now() - start
        records = traced if trace else _aggregated(handle, mask)
    return Gathered(records, max(elapsed, 1), len(records) >= limits.records)


def _traced(firing: Firing, mask: int) -> LockRecord:
    event, lock, caller, *stack = firing.values
    return LockRecord(event, lock & mask, caller & mask, stack=_frames(stack))


def _frames(values: Sequence[Any]) -> tuple[int, ...]:
    """Return the addresses of a recorded stack, if there is one, without the first, the caller."""
    return tuple(frame.pc for frame in values[0][1:]) if values else ()


def _aggregated(handle: Handle, mask: int) -> list[LockRecord]:
    """Return the records of the two aggregations: averages, with their histograms."""
    aggregate, symbols = handle.session.aggregate, handle.session.symbols

    def keys(entry: Entry) -> tuple[Any, ...]:
        return tuple(value_reader(key, symbols)(entry.data, 0) for key in entry.keys)

    histograms = {entry.key_bytes(): _powers(entry) for entry in aggregate.variable(HISTOGRAM)}
    records = []
    for entry in aggregate.variable(AVERAGE):
        event, lock, caller, *stack = keys(entry)
        count, time = entry.words
        record = LockRecord(event, lock & mask, caller & mask, count, time, stack=_frames(stack))
        records.append(replace(record, histogram=histograms.get(entry.key_bytes(), Counter())))
    return sorted(records, key=lambda record: (record.event, record.lock, record.caller, record.stack))


def _powers(entry: Entry) -> Counter[int]:
    """Return a distribution by the power of two above each bucket."""
    value = plain_value(entry.action, entry.words)
    assert isinstance(value, dict)
    return Counter({int(low).bit_length(): number for low, number in value.items() if low >= 0})
