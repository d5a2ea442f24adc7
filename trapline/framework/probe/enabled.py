"""The enablings of one consumer: ECBs by EPID, aggregations and formats by number.

Source: FreeBSD dtrace.c dtrace_epid2ecb(), dtrace_aggid2agg(), dtrace_format_add(), the ioctls
EPROBE and AGGDESC.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from emu.support.plain import address_of, words
from trapline.framework.base.device import AggregationDescription, DeviceError, EnabledProbe, RecordDescription
from trapline.framework.base.probes import Probe
from trapline.framework.buffers.layout import HEADER_SIZE, Placed, variable_of
from trapline.framework.probe.ecb import Clause, Ecb, Run

# The initial number of sizes.
_SIZES: Final = 64


class Enabled:
    """The ECBs, aggregations and formats that one consumer has enabled, by number."""

    def __init__(self) -> None:
        self.ecbs: list[Ecb] = []
        """In order of EPID, which count from 1."""
        self._aggregations: list[tuple[Ecb, int]] = []
        """By aggregation id, from 1: the enabling, and the place of the action in its layout."""
        self._formats: dict[str, int] = {}
        """The numbers of format strings, from 1."""
        self._sizes = words(_SIZES)
        self.sizes = words(1)
        """For machine code: the address of the sizes of records, by EPID."""
        self.sizes[0] = address_of(self._sizes)

    def add(self, clause: Clause, probes: Sequence[Probe], make: Callable[[Ecb], Run]) -> Sequence[Ecb]:
        """Note a clause at probes, each under the next EPID and the next aggregation ids.

        `make` returns what runs an enabling.
        """
        aggregating = [place for place, placed in enumerate(clause.layout.actions) if placed.aggregating is not None]
        count, first, size = len(aggregating), len(self._aggregations) + 1, clause.layout.size or HEADER_SIZE
        added = []
        for epid, probe in enumerate(probes, len(self.ecbs) + 1):
            ecb = Ecb(epid, probe, clause, tuple(range(first, first + count)), make)
            for place in aggregating:
                self._aggregations.append((ecb, place))
            first += count
            added.append(ecb)
        self.ecbs += added
        self._grow(len(self.ecbs) + 1)
        for ecb in added:
            self._sizes[ecb.epid] = size
        return added

    def _grow(self, needed: int) -> None:
        """Make room for so many sizes."""
        have = len(self._sizes)
        if needed > have:
            larger = words(max(needed, 2 * have))
            larger[:have] = self._sizes
            self._sizes, self.sizes[0] = larger, address_of(larger)

    def clear(self) -> None:
        """Forget all."""
        self.ecbs.clear()
        self._aggregations.clear()

    def record_size(self, epid: int) -> int:
        """Return the size of an EPID's records."""
        return self._sizes[epid]

    def enabled_probe(self, epid: int) -> EnabledProbe:
        """Describe an EPID."""
        if not 0 < epid <= len(self.ecbs):
            raise DeviceError("EINVAL", f"there is no enabled probe {epid}")
        ecb = self.ecbs[epid - 1]
        layout = ecb.clause.layout
        records = tuple(
            self._describe(placed, 0) for placed in layout.actions if not placed.in_tuple and placed.aggregating is None
        )
        return EnabledProbe(epid, ecb.probe.id, layout.size, records)

    def aggregation(self, aggregation_id: int) -> AggregationDescription:
        """Describe an aggregation id."""
        if not 0 < aggregation_id <= len(self._aggregations):
            raise DeviceError("EINVAL", f"there is no aggregation {aggregation_id}")
        ecb, last = self._aggregations[aggregation_id - 1]
        actions = ecb.clause.layout.actions
        placed = actions[last]
        assert placed.aggregating is not None
        base = placed.aggregating.base
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
        return self._formats.setdefault(text, len(self._formats) + 1)

    def format(self, number: int) -> str:
        """Return a format string."""
        if not 0 < number <= len(self._formats):
            raise DeviceError("EINVAL", f"there is no format {number}")
        return list(self._formats)[number - 1]
