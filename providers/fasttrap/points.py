"""The tracepoints of all processes of a guest, by process and address.

Source: FreeBSD sys/cddl/contrib/opensolaris/uts/common/dtrace/fasttrap.c
(fasttrap_tracepoint_enable, fasttrap_tracepoint_disable).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from emu.displaced.decision import Code, Decision, Emulated, OutOfLine, Refused
from emu.engine.memory.pages import PAGE
from emu.support.words import WORD_MASK, BadAddressError
from providers.fasttrap.port import Port
from providers.fasttrap.records import AFTER, Point, Probe, Target
from providers.fidelity import Fidelity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from emu.guest.processes import Processes

# The number of decisions that are remembered: an instruction is often looked at, and then probed in several ways.
_REMEMBERED: Final = 1 << 10
# Size of a function that is everywhere: a probe at an absolute address.
EVERYWHERE: Final = WORD_MASK


class TracepointError(Exception):
    """A tracepoint that is impossible: the message says why."""


class _Function(NamedTuple):
    """The code of a function, of which many instructions are asked for."""

    target: Target
    start: int
    code: bytes
    """Its bytes, and those of one more instruction."""
    lengths: Mapping[int, int]
    """The length of each of its instructions, by offset."""


class Points:
    """The tracepoints of a guest's processes, by process and address."""

    def __init__(self, kernel: Processes, port: Port, fidelity: Fidelity) -> None:
        self._kernel = kernel
        self._port = port
        self._fidelity = fidelity
        self._treat = lru_cache(_REMEMBERED)(port.treat)
        self._points: dict[int, dict[int, Point]] = {}
        """By process number and address."""
        self._together: ExitStack | None = None
        self._patched: set[Target] = set()
        """The processes whose tracepoints change together."""
        self._function: _Function | None = None
        """The function that was last read, while many tracepoints are installed."""

    def get(self, pid: int, address: int) -> Point | None:
        """Return the tracepoint of a process at an address; it may be dead."""
        return self._points.get(pid, {}).get(address)

    def of(self, target: Target) -> Sequence[Point]:
        """Return the tracepoints of a process."""
        return [point for point in self._points.get(target.process.pid, {}).values() if point.target is target]

    def put(self, point: Point) -> None:
        """Note a tracepoint."""
        self._points.setdefault(point.target.process.pid, {})[point.address] = point

    def drop(self, point: Point) -> None:
        """Undo `put`."""
        del self._points[point.target.process.pid][point.address]

    # -- decisions

    def look(self, target: Target, address: int, function: int = 0) -> Decision:
        """Decide about the instruction at an address.

        `function` is the start of its function, 0: unknown.

        Raises `BadAddressError`.
        """
        return self._treat(self._code(target, address, function), self._fidelity)

    def _code(self, target: Target, address: int, function: int) -> Code:
        """Return the instruction at an address, with what is around it in its function.

        Of one near the end of a page the rest is read apart, since there may be no next page
        (fasttrap_tracepoint_init in fasttrap_isa.c).
        """
        around, longest = self._port.around, self._port.longest
        start = min(address, max(function, address - around)) if function else address
        for size in (longest + around * bool(function), longest, min(longest, PAGE - address % PAGE)):
            try:
                data = target.patcher.original(start, address - start + size)
            except BadAddressError:
                continue
            return Code.at(data, address - start, address, longest=self._port.longest, around=around)
        raise BadAddressError(address)

    def _code_of(self, probe: Probe, address: int) -> Code:
        """Return the instruction of a probe.

        While many tracepoints are installed, its function is read once.
        """
        target, start = probe.target, probe.function
        if probe.size == EVERYWHERE:
            return self._code(target, address, 0)
        if probe.size <= self._port.longest:  # it has few instructions
            return self._code(target, address, start)
        function = self._function
        if function is None or function.start != start or function.target is not target:
            function = self._function = None if self._together is None else self._read(target, start, probe.size)
        offset = address - start
        if function is None or not 0 <= offset < probe.size:
            return self._code(target, address, start)
        longest, around = self._port.longest, self._port.around
        length = function.lengths.get(offset, 0)
        return Code.at(function.code, offset, address, longest=longest, around=around, length=length)

    def _read(self, target: Target, start: int, size: int) -> _Function | None:
        """Read a function, with what is looked at behind its last instruction.

        None: memory ends before that, so its instructions are read one by one.
        """
        try:
            code = target.patcher.original(start, size + self._port.longest + self._port.around)
        except BadAddressError:
            return None
        lengths = {offset: after - offset for offset, after in pairwise(self._port.boundaries(code[:size]))}
        return _Function(target, start, code, lengths)

    # -- installing

    @contextmanager
    def together(self) -> Iterator[None]:
        """Install and remove many tracepoints: memory is written at the end."""
        self._kernel.traps.changed()
        with ExitStack() as stack:
            self._together = stack
            try:
                yield
            finally:
                self._together, self._function = None, None
                self._patched.clear()

    def _changes(self, target: Target) -> None:
        """Note that tracepoints of a process are about to change."""
        if self._together is None:
            self._kernel.traps.changed()
        elif target not in self._patched:
            self._patched.add(target)
            self._together.enter_context(target.patcher.together())

    def install(self, probe: Probe, address: int) -> None:
        """Install one of a probe's tracepoints.  Raises `TracepointError`."""
        target = probe.target
        point = self.get(target.process.pid, address)
        if point is None or not point.target.live:
            point = self._make(probe, address)
            self.put(point)
        # At the front: the probe that was enabled last fires first.
        (point.after if probe.type in AFTER else point.before).insert(0, probe)
        self._changes(target)
        target.patcher.install(point.tracepoint)

    def _make(self, probe: Probe, address: int) -> Point:
        target = probe.target
        try:
            code = self._code_of(probe, address)
        except BadAddressError:
            raise TracepointError(f"no code is loaded at {address:#x} in pid {target.process.pid}") from None
        decision = self._treat(code, self._fidelity)
        if isinstance(decision, Refused):
            raise TracepointError(f"no tracepoint at {address:#x}: {decision.rule.why} ({decision.rule.source})")
        assert isinstance(decision, Emulated | OutOfLine), "fasttrap runs code out of line, it does not step"
        patch = self._port.breakpoint(decision.length)
        tracepoint = target.patcher.create(address, patch, "fasttrap", code.data[: len(patch)])
        return Point(target, address, decision, tracepoint)

    def remove(self, probe: Probe, address: int) -> None:
        """Remove one of a probe's tracepoints, unless another probe still needs it."""
        point = self.get(probe.target.process.pid, address)
        if point is None or point.target is not probe.target:
            return
        users = point.after if probe.type in AFTER else point.before
        if probe in users:
            users.remove(probe)
        self._changes(point.target)
        if not point.before and not point.after:
            if point.target.live:
                point.target.patcher.remove(point.tracepoint)
            self.forget(point)

    def forget_all(self, target: Target) -> None:
        """Forget the tracepoints of a process whose memory is gone."""
        target.patcher.forget_all()
        for point in self.of(target):
            self.drop(point)

    def forget(self, point: Point) -> None:
        """Forget a tracepoint that is not installed, or whose memory is gone."""
        point.target.patcher.forget(point.tracepoint)
        self.drop(point)
