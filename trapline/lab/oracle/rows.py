"""The rows of the oracle, and what a Linux kernel prints about its own probes.

Source: Linux 6.12 kernel/trace/trace_output.c, trace_kprobe.c and trace_uprobe.c
(probes_profile_seq_show).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from emu.guest.linux_kernel.machine.initramfs import MARK

GROUP: Final = "trapline"
BUFFER_KIB: Final = 16384
_TRACE_BEGINS, _TRACE_ENDS, _PROFILE_BEGINS = b"== trace\n", b"== end\n", b"== profile\n"
# comm-pid [cpu] flags time: event: (place) arguments, up to the next record; a string may contain line feeds.
_RECORD: Final = re.compile(
    rb"^ *\S[^\n]*?-\d+ +\[\d+\] \S+ +[\d.]+: (?P<event>\w+): \(.*?\)(?P<values>.*?)"
    rb"(?=\n *\S[^\n]*-\d+ +\[\d+\] |\n*\Z)",
    re.MULTILINE | re.DOTALL,
)
# /init's messages begin with this character, so it is removed from the trace.
_MARK: Final = f"\\{ord(MARK):03o}"
_PROFILE: Final = re.compile(rb"^\s*(?:\S*/\S+ )?\s*(\w+)\s+(\d+)(?:\s+(\d+))?\s*$", re.MULTILINE)


@dataclass(slots=True)
class Row:
    """One function, with the hits of both."""

    function: str
    kind: str = "kprobe"
    """The kernel's kind of probe: kprobe, kretprobe, uprobe or uretprobe."""
    ours: int = 0
    kernel: int | None = None
    """The kernel's count of hits; None: it refused the probe."""
    missed: int = 0
    """The number of hits that the kernel reports as missed."""
    recorded: int = 0
    """Records in the kernel's trace."""
    values: int = 0
    """Values in these records."""
    same_values: bool = True
    difference: str = ""
    """The first record of the kernel's that is not among ours."""
    _hits: list[str] = field(default_factory=list, repr=False)

    @property
    def agrees(self) -> bool:
        """Whether both have the same hits; a kretprobe that the kernel refuses is not a difference."""
        if self.kernel is None:
            return self.kind == "kretprobe" and not self.ours
        return self.ours == self.kernel + self.missed and self.same_values

    def hit(self, values: str) -> None:
        """Record a hit of Trapline's breakpoint, with the values as the kernel would print them."""
        self.ours += 1
        self._hits.append(values.replace(MARK, ""))

    def compare(self, records: list[str]) -> None:
        """Compare the kernel's records with Trapline's hits, which must include them in order.

        The kernel has no record of a hit that it has missed, or met while it wrote another.
        """
        self.recorded = len(records)
        self.values = sum(record.count("=") for record in records)
        hits = iter(self._hits)
        for record in records:
            if record not in hits:
                self.same_values, self.difference = False, record
                return


class TraceLine(NamedTuple):
    """A line of the trace."""

    event: str
    values: str


class Shown(NamedTuple):
    """What the kernel shows after a run."""

    counts: dict[str, tuple[int, int]]
    """Hits and missed hits, by event."""
    records: list[TraceLine]


def script(events: list[str], workload: str, kind: str) -> str:
    """Return the shell script that makes events, runs a workload with them, and shows the results.

    `events` are commands that write to `kind`_events.
    """
    lines = [
        "cd /sys/kernel/tracing",
        f"echo {BUFFER_KIB} > buffer_size_kb",
        *events,
        f"echo 1 > events/{GROUP}/enable",
        workload,
        f"echo 0 > events/{GROUP}/enable",
        f"echo '{_PROFILE_BEGINS.decode().strip()}'",
        f"cat {kind}_profile",
        f"echo '{_TRACE_BEGINS.decode().strip()}'",
        f"tr -d '{_MARK}' < trace",
        f"echo '{_TRACE_ENDS.decode().strip()}'",
    ]
    return "; ".join(lines)


def read(shown: bytes) -> Shown:
    """Read what the script has printed."""
    _, _, rest = shown.partition(_PROFILE_BEGINS)
    profile, _, rest = rest.partition(_TRACE_BEGINS)
    counts = {name.decode(): (int(hits), int(missed or 0)) for name, hits, missed in _PROFILE.findall(profile)}
    return Shown(counts, list(_records(rest.partition(_TRACE_ENDS)[0])))


def _records(trace: bytes) -> Iterator[TraceLine]:
    for found in _RECORD.finditer(trace):
        event, values = (found[name].decode("utf-8", "replace") for name in ("event", "values"))
        yield TraceLine(event, values.strip(" "))
