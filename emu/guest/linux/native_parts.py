"""Machine code that reads the Linux guest: the current thread and its process.

It reads the words of `emu.guest.linux.sched.thread_words` and `call_words`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.engine.engine import Engine
from emu.engine.native_parts import engine_code
from emu.engine.time.clock import VirtualClock
from emu.guest.linux.call_words import CallWords
from emu.guest.linux.sched.thread_words import NUMBERS, ThreadState, ThreadWord, ThreadWords
from emu.guest.native_parts import live_register_code
from emu.native.builder import Callee, Function
from emu.native.guest import GuestCode, LateArguments, Writer
from emu.native.values import Word
from emu.support.words import WORD_MASK

_WORD: Final = 8


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
    place, left = f.variable(f.add(words, _WORD * ThreadWord.ANCESTORS)), f.variable(count)
    with f.loop():
        f.ret_if(f.eq(left.get(), 0), 0)
        f.ret_if(f.eq(f.load(place.get()), wanted), 1)
        place.set(f.add(place.get(), _WORD))
        left.set(f.sub(left.get(), 1))


def _python_unless_known(f: Function, slow: Callable[[], Word]) -> None:
    state = f.load(f.module.symbol("thread_words"), _WORD * ThreadWord.STATE)
    with f.when(f.ne(state, ThreadState.KNOWN), likely=False):
        f.ret(slow())
