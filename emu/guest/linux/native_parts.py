"""Words from which machine code reads the Linux guest, and the machine code that does.

Threads and processes are objects of Python.  While a program runs, or a probe of a system call
fires, they do not change, so that the first reader of the thread leaves it in these words until the
end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Final

from emu.engine.engine import Engine
from emu.engine.native_parts import engine_code
from emu.engine.time.clock import VirtualClock
from emu.guest.base import Thread
from emu.guest.native_parts import live_register_code
from emu.native.builder import Callee, Function
from emu.native.guest import GuestCode, LateArguments, Writer
from emu.native.operations import Word
from emu.support.plain import address_of, words
from emu.support.words import WORD_MASK

_WORD: Final = 8
# Bytes of the name: at least as many as `emu.native.guest.NAME_SIZE`.
_NAME_SIZE: Final = 24
# Ancestors that are kept.
_MOST: Final = 8
# As many as D has variables for arguments.
_ARGUMENTS: Final = 10


class ThreadWord(IntEnum):
    """The words of the current thread."""

    STATE = 0
    """Whether a program runs, and whether the other words describe its thread: `ThreadState`."""
    ADDRESS = 1
    TID = 2
    PID = 3
    PPID = 4
    UID = 5
    GID = 6
    ERRNO = 7
    TIME = 8
    """Nanoseconds that it has been on a CPU before this run."""
    NAME = 9
    """The name, in `_NAME_SIZE` bytes."""
    GENERATIONS = NAME + _NAME_SIZE // _WORD
    """The number of ancestors beyond the parent; all ones: too many for these words."""
    ANCESTORS = GENERATIONS + 1
    """Their pids, the nearest first."""


class ThreadState(IntEnum):
    """The values of `ThreadWord.STATE`."""

    STOPPED = 0
    RUNNING = 1
    KNOWN = 2


_STATE: Final = int(ThreadWord.STATE)
NUMBERS: Final = {
    "address": ThreadWord.ADDRESS,
    "tid": ThreadWord.TID,
    "pid": ThreadWord.PID,
    "ppid": ThreadWord.PPID,
    "uid": ThreadWord.UID,
    "gid": ThreadWord.GID,
    "errno": ThreadWord.ERRNO,
}


class ThreadWords:
    """The current thread as machine code sees it."""

    def __init__(self) -> None:
        self._words = words(ThreadWord.ANCESTORS + _MOST)
        self._bytes = self._words.cast("B")
        self.address = address_of(self._words)
        """The address of the words."""

    def running(self) -> None:
        """Say that a program begins to run."""
        self._words[_STATE] = ThreadState.RUNNING

    def stopped(self) -> None:
        """Say that no program runs: what is known may change."""
        self._words[_STATE] = ThreadState.STOPPED

    def show(self, thread: Thread, time: int, ancestors: Iterable[int]) -> None:
        """Show the thread that runs, until the run ends.

        `time` is in nanoseconds; `ancestors` are pids, those of the parent's parent and on.
        """
        if self._words[_STATE] != ThreadState.RUNNING:
            return
        for number, word in NUMBERS.items():
            self._words[word] = getattr(thread, number) & WORD_MASK
        self._words[ThreadWord.TIME] = time
        name = thread.execname.encode("utf-8", "surrogateescape")[: _NAME_SIZE - 1]
        start = _WORD * ThreadWord.NAME
        self._bytes[start : start + _NAME_SIZE] = name.ljust(_NAME_SIZE, b"\0")
        known = [pid for pid, _ in zip(ancestors, range(_MOST + 1), strict=False)]
        self._words[ThreadWord.GENERATIONS] = len(known) if len(known) <= _MOST else WORD_MASK
        for generation, pid in enumerate(known[:_MOST]):
            self._words[ThreadWord.ANCESTORS + generation] = pid
        self._words[_STATE] = ThreadState.KNOWN


class CallWords:
    """The arguments of a system call while its entry probe fires; otherwise all are 0."""

    def __init__(self) -> None:
        self._words = words(_ARGUMENTS)
        self.address = address_of(self._words)
        """The address of the words."""

    def set(self, arguments: Sequence[int]) -> None:
        """Store arguments; missing ones are 0."""
        for index in range(_ARGUMENTS):
            self._words[index] = arguments[index] if index < len(arguments) else 0

    def get(self, index: int) -> int:
        """Return an argument."""
        return self._words[index] if index < _ARGUMENTS else 0


def linux_code(engine: Engine, clock: VirtualClock, thread: ThreadWords, call: CallWords, epoch: int) -> GuestCode:
    """Return what machine code finds out about a Linux guest."""
    functions: dict[str, Writer] = {name: _number(word) for name, word in NUMBERS.items()}
    functions["thread_time"] = _number(ThreadWord.TIME)
    functions["execname"] = _name
    # The kernel is Python, and has no stack.
    functions["kernel_callers"] = lambda f, _slow: f.ret(0)
    functions["descends"] = _descends
    functions["user_register"] = live_register_code(engine.isa)
    functions["wall"] = lambda f, _slow: f.ret(f.add(f.call(Callee("now")), epoch))
    functions[LateArguments.SYSTEM_CALL] = _of_call
    symbols = {"thread_words": thread.address, "call_words": call.address}
    return engine_code(engine, clock).joined(GuestCode(functions, symbols))


def _number(word: ThreadWord) -> Writer:
    def write(f: Function, slow: Callable[[], Word]) -> None:
        _python_unless_known(f, slow)
        f.ret(f.load(f.module.symbol("thread_words"), _WORD * word))

    return write


def _of_call(f: Function, _slow: Callable[[], Word]) -> None:
    """Write `late_of_system_call`."""
    f.ret(f.load(f.add(f.module.symbol("call_words"), f.mul(f.parameters[0], _WORD))))


def _name(f: Function, slow: Callable[[], Word]) -> None:
    _python_unless_known(f, slow)
    f.ret(f.add(f.module.symbol("thread_words"), _WORD * ThreadWord.NAME))


def _descends(f: Function, slow: Callable[[], Word]) -> None:
    """Write `descends`: the process and its parent have been compared before."""
    (wanted,) = f.parameters
    _python_unless_known(f, slow)
    words = f.module.symbol("thread_words")
    count = f.load(words, _WORD * ThreadWord.GENERATIONS)
    with f.when(f.eq(count, WORD_MASK), likely=False):
        f.ret(slow())
    address, left = f.variable(f.add(words, _WORD * ThreadWord.ANCESTORS)), f.variable(count)
    with f.loop():
        f.ret_if(f.eq(left.get(), 0), 0)
        f.ret_if(f.eq(f.load(address.get()), wanted), 1)
        address.set(f.add(address.get(), _WORD))
        left.set(f.sub(left.get(), 1))


def _python_unless_known(f: Function, slow: Callable[[], Word]) -> None:
    state = f.load(f.module.symbol("thread_words"), _WORD * ThreadWord.STATE)
    with f.when(f.ne(state, ThreadState.KNOWN), likely=False):
        f.ret(slow())
