"""Runs cases in child processes, many in one, and says which of them did not go well.

The parent is the warm server: it has all modules imported and prepares the fuzzer once.  Each child
is a fork of it, which shares that memory.  A child runs cases one after another, writes the number
of the current case into memory that both share, and sends its outcomes in batches.  The parent
checks the child's CPU time and memory while it waits.  A fuzzer whose cases change a machine that
is ready in the parent has each of them in a fork of the child.

A case that ends its child, exceeds a limit or raises what it must not is a suspect: the cases
before it are finished in another child, and the suspect runs alone.  The result there is reported.
A suspect that passes when it runs alone is a finding too: cases before it have left an effect.
"""

from __future__ import annotations

import faulthandler
import gc
import mmap
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.fuzz.case import Finding, Fuzzer

_PAGE: Final = resource.getpagesize()
# Seconds between two looks at a child.
_LOOK: Final = 0.1
# Seconds that a child may take to prepare.
_PATIENCE: Final = 120.0
# Of a traceback, what is told.
_FRAMES: Final = 4
# Bytes and seconds of outcomes that a child keeps before it sends them.
_BUNCH: Final = 1 << 14
_BUNCH_TIME: Final = 0.05
# Cases and seconds after which a child gives its place to a new one.
_CHILD_CASES: Final = 50_000
_CHILD_TIME: Final = 30.0
# Address space beside the fuzzer's limit: each engine reserves a GiB and more that it never uses.
_RESERVED: Final = 64 << 30
# Cases between two collections of garbage: a machine of an earlier case keeps its address space until then, and a few
# dozen machines fill what `_limit` allows.
_COLLECT: Final = 16
# Longest report of a finding.
_TOLD: Final = 200
# Where a child has its folder, if there is such a place: files on a disk take longer than most cases.
_MEMORY: Final = Path("/dev/shm")  # noqa: S108  TemporaryDirectory makes the names
# What the shared word holds before the first case.
_PREPARING: Final = (1 << 64) - 1

# (number, case)
Numbered = tuple[int, bytes]


class FromNumbers(Sequence[Numbered]):
    """The cases of a fuzzer whose numbers are in a range."""

    def __init__(self, fuzzer: Fuzzer, numbers: Sequence[int]) -> None:
        self._fuzzer = fuzzer
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: int) -> Numbered:  # type: ignore[override]
        number = self._numbers[index]
        return number, self._fuzzer.case(number)


@dataclass
class Tally:
    """The results of a number of cases."""

    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    slowest: float = 0.0
    """CPU seconds of the case that took longest."""

    def add(self, outcome: str, seconds: float) -> None:
        """Count a case that went well."""
        self.cases += 1
        self.outcomes[outcome.partition(": ")[0]] += 1
        self.slowest = max(self.slowest, seconds)

    def found(self, finding: Finding) -> None:
        """Count a case that did not."""
        self.cases += 1
        self.outcomes["found"] += 1
        self.findings.append(finding)


def run(fuzzer: Fuzzer, cases: Sequence[Numbered], progress: Callable[[int], object] = lambda _n: None) -> Tally:
    """Run cases; `progress(n)` is called with how many of them are done."""
    tally = Tally()
    fuzzer.warm()
    at, suspect = 0, -1
    why = ""
    while at < len(cases):
        alone = at == suspect
        stop = at + 1 if alone else suspect if suspect > at else len(cases)
        child = _Child(fuzzer, cases, at, stop)
        for outcome, seconds in child.outcomes():
            tally.add(outcome, seconds)
            at += 1
            progress(tally.cases)
        if alone:
            number, case = cases[suspect]
            if at == suspect:
                tally.found(Finding(fuzzer.name, number, child.why, case))
                at += 1
            else:
                tally.findings.append(Finding(fuzzer.name, number, f"only after other cases: {why}", case))
            suspect = -1
        elif child.why:
            suspect, why = max(child.under_way, at), child.why
    return tally


def outcomes(fuzzer: Fuzzer, cases: Sequence[Numbered], *, alone: bool) -> list[str]:
    """Return how each case ends, when it runs after the others or in a child of its own."""
    fuzzer.warm()
    parts = [(index, index + 1) for index in range(len(cases))] if alone else [(0, len(cases))]
    ended = []
    for first, stop in parts:
        at = first
        while at < stop:
            child = _Child(fuzzer, cases, at, stop)
            found = [outcome for outcome, _ in child.outcomes()]
            ended += found
            at += len(found)
            if child.why:
                ended.append(f"found: {child.why}")
                at += 1
    return ended


class _Child:
    """A process that runs the cases [first, stop), and its watch."""

    def __init__(self, fuzzer: Fuzzer, cases: Sequence[Numbered], first: int, stop: int) -> None:
        self.why = ""
        """Why the child has not run all of its cases; "": it has, or gives its place to another."""
        self._fuzzer = fuzzer
        self._folder = tempfile.TemporaryDirectory(prefix="fuzz-", dir=_MEMORY if _MEMORY.is_dir() else None)
        self._shared = mmap.mmap(-1, mmap.PAGESIZE)
        self._word = memoryview(self._shared).cast("Q")  # the index of the case under way, and memory before the first
        self._word[0] = _PREPARING
        self._reading, writing = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid = os.fork()
        if not self._pid:
            os.close(self._reading)
            _run_child(fuzzer, cases, range(first, stop), Path(self._folder.name), self._word, writing)
        os.close(writing)

    @property
    def under_way(self) -> int:
        """Index of the case that the child has begun last."""
        return -1 if self._word[0] == _PREPARING else int(self._word[0])

    def outcomes(self) -> Iterator[tuple[str, float]]:
        """Yield the ending of each case and its CPU seconds, until the child has ended."""
        try:
            for line in self._lines():
                if line.startswith("!"):
                    self.why = line[1:]
                elif line == "end":
                    return
                else:
                    seconds, _, outcome = line.partition(" ")
                    yield outcome, float(seconds)
            self.why = self.why or self._ended()
        finally:
            os.close(self._reading)
            self._end()

    def _lines(self) -> Iterator[str]:
        pending = b""
        case, since = -1, self._times()
        while True:
            ready, _, _ = select.select([self._reading], [], [], _LOOK)
            if ready:
                data = os.read(self._reading, 1 << 16)
                if not data:
                    return
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    yield line.decode("utf-8", "replace")
                continue
            if self.under_way != case:
                case, since = self.under_way, self._times()
                continue
            used, passed = (now - then for now, then in zip(self._times(), since, strict=True))
            limit = self._fuzzer.seconds if case >= 0 else _PATIENCE
            if case >= 0 and self._resident() - self._word[1] > self._fuzzer.megabytes << 20:
                self.why = _too_much(self._fuzzer)
                return
            if used > limit or passed > self._fuzzer.patience * limit:
                self.why = _too_long(self._fuzzer)
                return

    def _ended(self) -> str:
        """Return how a child has ended that did not say that it would."""
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        return _ending(status)

    def _end(self) -> None:
        if self._pid:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._pid = 0
        self._folder.cleanup()

    def _times(self) -> tuple[float, float]:
        """Return seconds of CPU time that the child has used, and of wall time."""
        try:
            with open(f"/proc/{self._pid}/stat") as file:  # noqa: PTH123  ten times a second
                fields = file.read().rpartition(")")[2].split()
            ticks = sum(int(field) for field in fields[11:15])  # its own and its children's (proc(5))
        except (OSError, IndexError):
            ticks = 0
        return ticks / os.sysconf("SC_CLK_TCK"), time.monotonic()

    def _resident(self) -> int:
        try:
            with open(f"/proc/{self._pid}/statm") as file:  # noqa: PTH123  ten times a second
                return int(file.read().split()[1]) * _PAGE
        except (OSError, IndexError):
            return 0


def _ending(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"the process was ended by {signal.Signals(os.WTERMSIG(status)).name}"
    return f"the process exited with status {os.WEXITSTATUS(status)}"


def _too_much(fuzzer: Fuzzer) -> str:
    return f"it takes more than {fuzzer.megabytes} MiB"


def _too_long(fuzzer: Fuzzer) -> str:
    return f"it takes longer than {fuzzer.seconds:g} s"


# -- in the child


def _run_child(
    fuzzer: Fuzzer, cases: Sequence[Numbered], indices: range, folder: Path, word: memoryview[int], writing: int
) -> None:
    """Run cases and exit; this is a process of its own."""
    status = 1
    try:
        os.setpgid(0, 0)  # with the forks of its cases
        faulthandler.disable()  # what aborts is told in a line
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
        gc.freeze()
        _limit(fuzzer)
        os.chdir(folder)
        fuzzer.prepare(Path())
        _run_cases(fuzzer, cases, indices, word, writing)
        status = 0
    except BaseException:  # noqa: BLE001  the child must not go on as its parent
        traceback.print_exc()
    finally:
        os._exit(status)


def _limit(fuzzer: Fuzzer) -> None:
    """Bound the address space: what asks for more at once is to see it, too."""
    with open("/proc/self/statm") as file:  # noqa: PTH123  of this process
        now = int(file.read().split()[0]) * _PAGE
    most = now + (fuzzer.megabytes << 20) + _RESERVED
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _run_cases(fuzzer: Fuzzer, cases: Sequence[Numbered], indices: range, word: memoryview[int], writing: int) -> None:
    bunch = bytearray()
    sent = begun = time.monotonic()
    word[1] = _largest()
    most = word[1] + (fuzzer.megabytes << 20)
    for index in indices:
        _, case = cases[index]
        word[0] = index
        if index % _COLLECT == 0:
            gc.collect()
        outcome, seconds, largest = _forked(fuzzer, case) if fuzzer.forks else _here(fuzzer, case)
        if largest > most:
            outcome = f"!{_too_much(fuzzer)}"
        elif seconds > fuzzer.seconds and not outcome.startswith("!"):
            outcome = f"!{_too_long(fuzzer)}"
        if outcome.startswith("!"):
            _say(writing, bunch + outcome.encode("utf-8", "replace") + b"\n")
            return
        bunch += f"{seconds:.4f} {outcome}".replace("\n", " ").encode("utf-8", "replace") + b"\n"
        now = time.monotonic()
        if len(bunch) > _BUNCH or now - sent > _BUNCH_TIME:
            _say(writing, bunch)
            bunch.clear()
            sent = now
            if index - indices.start > _CHILD_CASES or now - begun > _CHILD_TIME:
                break
    _say(writing, bunch + b"end\n")


def _here(fuzzer: Fuzzer, case: bytes) -> tuple[str, float, int]:
    """Run a case; return how it ended ("!" before what is found), its CPU time, and the most memory."""
    since = time.process_time()
    try:
        outcome = fuzzer.outcome(case)
    except Exception as error:  # noqa: BLE001  whatever it is, it is a finding
        outcome = f"!{_told(error)}"
    return outcome, time.process_time() - since, _largest()


def _forked(fuzzer: Fuzzer, case: bytes) -> tuple[str, float, int]:
    """Run a case in a process of its own; return as `_here`."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        status = 1
        try:
            limit = int(fuzzer.seconds) + 1
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            outcome, _, _ = _here(fuzzer, case)
            _say(writing, outcome.encode("utf-8", "replace"))
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        outcome = file.read().decode("utf-8", "replace")
    _, status, used = os.wait4(process, 0)
    if status:
        late = os.WIFSIGNALED(status) and os.WTERMSIG(status) in {signal.SIGXCPU, signal.SIGKILL}
        outcome = f"!{_too_long(fuzzer) if late else _ending(status)}"
    return outcome, used.ru_utime + used.ru_stime, used.ru_maxrss << 10


def _largest() -> int:
    """Return the most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _say(writing: int, data: bytes | bytearray) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(writing, left) :]
    left.release()


def _told(error: BaseException) -> str:
    """Return an exception and the last of its frames on one line."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    places = " < ".join(f"{frame.name} ({os.path.basename(frame.filename)})" for frame in reversed(frames))  # noqa: PTH119
    text = " ".join(str(error).split())[:_TOLD]
    return f"{type(error).__name__}: {text} in {places}"
