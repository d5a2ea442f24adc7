"""Runs cases in a child process, and tells which of them did not go well.

The child writes a line to a pipe before each case and after it.  The parent waits for the next line
no longer than a case may take, and looks at the child's memory meanwhile; a child that is late, too
large or gone is replaced, and the case that it had begun is a finding.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from tests.fuzz.case import Finding, Fuzzer

_PAGE = resource.getpagesize()
# Seconds between two looks at a child's memory.
_LOOK = 0.25
# Seconds that a child may take to prepare.
_PATIENCE = 120.0
# A case's limit is CPU time, since the machine may be busy; one that only waits may take so many times that.
_IDLE: Final = 12
# Of a traceback, what is told.
_FRAMES = 4


@dataclass
class Tally:
    """What came of a number of cases."""

    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)


# (number, case)
Numbered = tuple[int, bytes]


def run(
    fuzzer: Fuzzer, cases: Callable[[int], Iterable[Numbered]], progress: Callable[[int], object] = lambda _n: None
) -> Tally:
    """Run cases: `cases(n)` makes them without the first n, for a child that takes another's place."""
    tally = Tally()
    while _one_child(fuzzer, cases(tally.cases), tally, progress):
        pass
    return tally


def _one_child(fuzzer: Fuzzer, cases: Iterable[Numbered], tally: Tally, progress: Callable[[int], object]) -> bool:
    """Run cases in one child; return whether another has to go on after it."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if not child:
        os.close(reading)
        _child(fuzzer, cases, writing)
    os.close(writing)
    watch = _Watch(child, reading, fuzzer)
    begun: Numbered | None = None
    try:
        for kind, number, rest in watch.lines():
            if kind == "begin":
                begun = number, bytes.fromhex(rest)
                continue
            assert begun is not None
            tally.cases += 1
            progress(tally.cases)
            if kind == "found":
                tally.findings.append(Finding(fuzzer.name, begun[0], bytes.fromhex(rest).decode(), begun[1]))
            tally.outcomes["found" if kind == "found" else rest] += 1
            begun = None
    finally:
        os.close(reading)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if begun is None:
        if not watch.ended:
            raise RuntimeError(f"{fuzzer.name}: a child ended between two cases ({watch.why or status})")
        return False
    why = watch.why or (
        f"the process was ended by {signal.Signals(os.WTERMSIG(status)).name}"
        if os.WIFSIGNALED(status)
        else f"the process exited with status {os.WEXITSTATUS(status)}"
    )
    tally.cases += 1
    tally.findings.append(Finding(fuzzer.name, begun[0], why, begun[1]))
    tally.outcomes["found"] += 1
    return True


class _Watch:
    """Reads a child's lines, and ends the child when it takes too long or too much."""

    def __init__(self, child: int, reading: int, fuzzer: Fuzzer) -> None:
        self.why = ""
        """Why the child was ended; "": it was not."""
        self.ended = False
        """Whether the child said that it had run all cases."""
        self._child = child
        self._reading = reading
        self._fuzzer = fuzzer
        self._before = 0
        self._pending = b""
        self._since = (0.0, 0.0)
        """CPU time and wall time at the latest line."""

    def lines(self) -> Iterator[tuple[str, int, str]]:
        """Yield (kind, number, rest) until the child is over."""
        limit = _PATIENCE
        self._since = self._times()
        while True:
            line, newline, rest = self._pending.partition(b"\n")
            if newline:
                self._pending = rest
                kind, number, text = line.decode().split(" ", 2)
                if kind == "end":
                    self.ended = True
                    return
                if kind == "ready":
                    self._before = self._resident()
                else:
                    yield kind, int(number), text
                limit = self._fuzzer.seconds
                self._since = self._times()
            elif not self._wait(limit):
                return

    def _wait(self, limit: float) -> bool:
        """Read more; False: the child is over, or has been ended."""
        ready, _, _ = select.select([self._reading], [], [], _LOOK)
        if ready:
            data = os.read(self._reading, 1 << 16)
            self._pending += data
            return bool(data)
        used, passed = (now - then for now, then in zip(self._times(), self._since, strict=True))
        if self._before and self._resident() - self._before > self._fuzzer.megabytes << 20:
            self.why = f"it takes more than {self._fuzzer.megabytes} MiB"
        elif used > limit or passed > _IDLE * limit:
            self.why = f"it takes longer than {self._fuzzer.seconds:g} s"
        else:
            return True
        os.kill(self._child, signal.SIGKILL)
        return False

    def _times(self) -> tuple[float, float]:
        """Return seconds of CPU time that the child has used, and of wall time."""
        try:
            with open(f"/proc/{self._child}/stat") as file:  # noqa: PTH123  at every case
                fields = file.read().rpartition(")")[2].split()
            ticks = int(fields[11]) + int(fields[12])  # utime and stime (proc(5))
        except (OSError, IndexError):
            ticks = 0
        return ticks / os.sysconf("SC_CLK_TCK"), time.monotonic()

    def _resident(self) -> int:
        try:
            with open(f"/proc/{self._child}/statm") as file:  # noqa: PTH123  once in a quarter of a second
                return int(file.read().split()[1]) * _PAGE
        except (OSError, IndexError):
            return 0


def _child(fuzzer: Fuzzer, cases: Iterable[Numbered], writing: int) -> None:
    """Run cases and exit; this is a process of its own."""
    status = 1
    try:
        faulthandler.disable()  # what aborts is told in a line
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
        fuzzer.prepare()
        _say(writing, "ready 0 -")
        for number, case in cases:
            _say(writing, f"begin {number} {case.hex()}")
            try:
                said = f"done {number} {fuzzer.outcome(case)}"
            except Exception as error:  # noqa: BLE001  whatever it is, it is a finding
                said = f"found {number} {_told(error).encode().hex()}"
            _say(writing, said)
        _say(writing, "end 0 -")
        status = 0
    except BaseException:  # noqa: BLE001  the child must not go on as its parent
        traceback.print_exc()
    finally:
        os._exit(status)


def _say(writing: int, text: str) -> None:
    data = text.encode() + b"\n"
    while data:
        data = data[os.write(writing, data) :]


def _told(error: BaseException) -> str:
    """Return an exception and the last of its frames on one line."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    places = " < ".join(f"{frame.name} ({os.path.basename(frame.filename)})" for frame in reversed(frames))  # noqa: PTH119
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {text} in {places}"
