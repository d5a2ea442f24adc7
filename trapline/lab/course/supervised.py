"""A check in a process of its own.

A student's file may hang, crash, print or end the process: that costs the part of the task that it
happens in, and no other.  The process is a fork, which has the package's modules already; it is not
a sandbox.  It tells its parts and their results as lines of JSON.  If it dies, or is silent for too
long, another one continues with the next part.
"""

from __future__ import annotations

import faulthandler
import gc
import io
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

from emu.support.child import end_with
from trapline.lab.course.work import CourseError, Part, Result, Work

Check = Callable[[Work], Iterable[Part | Result]]

# The seconds after which a part is stopped.
SECONDS: Final = 30.0
# The limits of the process, in bytes: a file that it writes, and its memory beside what it shares with this process at
# its start.  The memory is looked at from time to time where there is /proc: a limit of the system's would count what
# the CPU emulator reserves and does not use.
_FILE: Final = 1 << 20
_MEMORY: Final = 2 << 30
_LOOK: Final = 0.2
_SHOWN: Final = 2000


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a check."""

    results: tuple[Result, ...]
    printed: str
    """The end of the output of the student's files."""


def supervised(check: Check, work: Work, place: Path, seconds: float = SECONDS) -> Checked:
    """Run a check of the file `place`.

    Raises `CourseError` if the checker itself is wrong, or does not end.
    """
    parts: list[Result] = []
    done: list[Result] = []
    with tempfile.TemporaryFile() as output:
        while not parts or len(done) < len(parts):
            for message in _messages(check, work, output, len(done), seconds):
                match message:
                    case {"parts": told}:
                        parts = [Result(*one) for one in told]
                        if not parts:
                            return Checked((), "")
                    case {"result": told}:
                        done.append(Result(*told))
                    case {"broken": told}:
                        raise CourseError(f"{place}: {told}")
                    case {"ended": told} if not parts:
                        raise CourseError(f"{place}: {told}")
                    case {"ended": told} if len(done) < len(parts):
                        part = parts[len(done)]
                        done.append(Result(part.name, 0, part.of, told, part.hint))
        output.seek(max(0, output.seek(0, os.SEEK_END) - _SHOWN))
        return Checked(tuple(done), output.read().decode("utf-8", "replace").strip())


def _messages(check: Check, work: Work, output: BinaryIO, skip: int, seconds: float) -> Iterator[dict[str, Any]]:
    """Yield the messages of a process; the last one, `ended`, says how the process ended."""
    reading, writing = os.pipe()
    most = _memory(os.getpid()) + _MEMORY
    with warnings.catch_warnings():
        # The child uses nothing of other threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        parent, child = os.getpid(), os.fork()
    if not child:
        end_with(parent)
        _child(check, work, output, writing, skip)
    os.close(writing)
    ended = f"it has not ended after {seconds:g} seconds"
    waiting = b""
    try:
        with os.fdopen(reading, "rb", buffering=0) as pipe:
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                if _memory(child) > most:
                    ended = f"it needs more memory than {_MEMORY >> 30} GiB"
                    break
                if not select.select([pipe], [], [], min(_LOOK, seconds))[0]:
                    continue
                data = pipe.read(1 << 16)
                if not data:
                    ended = _how(os.waitpid(child, 0)[1])
                    child = 0
                    break
                *lines, waiting = (waiting + data).split(b"\n")
                until = time.monotonic() + seconds
                yield from map(json.loads, lines)
    finally:
        if child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    yield {"ended": ended}


def _memory(process: int) -> int:
    """Return the number of bytes of memory that a process has written; 0 if it is unknown.

    Pages of files do not count: a fork has none of them at its start.
    """
    try:
        _, resident, shared, *_ = map(int, Path(f"/proc/{process}/statm").read_text("ascii").split())
    except OSError:
        return 0
    return (resident - shared) * resource.getpagesize()


def _how(status: int) -> str:
    number = os.waitstatus_to_exitcode(status)
    if number >= 0:
        return f"it ends the process (exit status {number})"
    return f"it crashes the process (signal {signal.Signals(-number).name})"


def _child(check: Check, work: Work, output: BinaryIO, writing: int, skip: int) -> NoReturn:
    """Check, tell the results, and end the process."""
    # What the other process has left unused would be freed here, and the student's file could use as much more.
    gc.freeze()
    pipe = os.fdopen(writing, "w", encoding="utf-8", closefd=False)

    def tell(**message: Any) -> None:
        pipe.write(json.dumps(message) + "\n")
        pipe.flush()

    try:
        _confine(work.folder, output)
        parts = [one if isinstance(one, Part) else _told(one) for one in check(work)]
        tell(parts=[(one.name, 0, one.points, "", one.hint) for one in parts])
        for one in parts[skip:]:
            why = _why(one.test, work.folder)
            tell(result=(one.name, 0 if why else one.points, one.points, why, one.hint if why else ""))
    except BaseException as error:  # noqa: BLE001  a checker may fail in any way
        tell(broken=_line(error))
    finally:
        os._exit(0)


def _told(result: Result) -> Part:
    """Return a result that a checker has found by itself as a part."""
    if result.points not in {0, result.of}:
        raise CourseError(f"{result.name}: give all points of a part or none")
    return Part(result.name, result.of, lambda: "" if result.points else result.why, result.hint)


def _confine(folder: Path, output: BinaryIO) -> None:
    """Give the process its own session, output, directory and limits."""
    os.setsid()
    faulthandler.disable()  # its file may be the caller's: the exit status tells of a crash
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, target in ((nothing, 0), (output.fileno(), 1), (output.fileno(), 2)):
        os.dup2(number, target)
    sys.stdin = io.StringIO()
    sys.stdout = sys.stderr = io.TextIOWrapper(
        os.fdopen(1, "wb", 0, closefd=False), "utf-8", "replace", write_through=True
    )
    for limit, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, _FILE)):
        hard = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(folder.resolve()))
    os.chdir(folder)


def _why(test: Callable[[], str], folder: Path) -> str:
    """Return the mistake in a part; an exception of the student's code is one."""
    try:
        return test()
    except CourseError as error:
        return str(error)
    except SystemExit:
        return "it calls exit"
    except BaseException as error:
        place = _place(error, folder.resolve())
        if not place and isinstance(error, (TypeError, AttributeError)) and Work.ran_python():
            return _line(error)  # the call of something that is missing, or that takes something else
        if not place:
            raise
        return f"{place}: {_line(error)}"


def _place(error: BaseException, folder: Path) -> str:
    """Return the line of the student's files that an error comes from; "": from none."""
    if isinstance(error, SyntaxError) and Path(error.filename or "").resolve().is_relative_to(folder):
        return f"{Path(error.filename or '').name}, line {error.lineno}"
    frames = [one for one in traceback.extract_tb(error.__traceback__) if Path(one.filename).resolve().parent == folder]
    return f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""


def _line(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {' '.join(text.split())}" if text else type(error).__name__
