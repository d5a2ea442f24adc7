"""The buffer of lines that machine code writes, and its calls of Python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from emu.engine.qemu import library
from emu.native.block import Block
from emu.native.link import Linked
from emu.support.plain import Pinned, function_address
from trapline.ftrace.native.event import BufferWords, EventCode, has_native_form

if TYPE_CHECKING:
    from emu.guest.linux.guest import LinuxGuest
    from trapline.ftrace.definition import Definition
    from trapline.ftrace.filter import TraceOptions

# Size of the buffer in bytes.
SIZE: Final = 1 << 20
# The longest virtual time in nanoseconds that lines stay in the buffer while the program hits probes.
_LATEST: Final = 100_000_000
_ASKED: Final = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)


class RunsWords(Block):
    """The functions to run at a probe's hit: their number, and the address of their list."""

    count: int
    """0: Python's handler runs."""
    pairs: int


class EventRuns:
    """The functions of one event: Python serves it until `use` is called."""

    def __init__(self) -> None:
        self._pair = (ctypes.c_uint64 * 2)()
        self._words = RunsWords(0, ctypes.addressof(self._pair))
        self._held: tuple[Any, ...] = ()
        self.address = self._words.address
        """The value for a consumer's `runs`."""
        self.hits = 0
        """Hits that Python has served."""

    def use(self, run: int, held: tuple[Any, ...]) -> None:
        """Let a function serve the hits from now on; `held` is an object that it needs."""
        self._pair[0], self._held = run, held
        self._words.count = 1


class Lines:
    """The lines of a guest's events; `show(text)` receives whole lines, in their order."""

    def __init__(self, guest: LinuxGuest, options: TraceOptions, show: Callable[[str], object]) -> None:
        self._guest = guest
        self._options = options
        self._show = show
        self._data = bytearray(SIZE)
        self._pinned = Pinned(self._data)
        self._words = BufferWords(data=self._pinned.address, size=SIZE, due=_LATEST)

    @property
    def count(self) -> int:
        """Lines that machine code has written so far."""
        return self._words.count

    def drain(self) -> None:
        """Show the lines that are in the buffer."""
        words = self._words
        if words.used:
            text = self._data[: words.used].decode()
            words.used = 0
            self._show(text)
        words.due = self._guest.now() + _LATEST

    def compile(self, definition: Definition, runs: EventRuns, show: Callable[[int], object]) -> None:
        """Compile an event, if it has a native form; `show(function)` is Python's."""
        machine_code = self._guest.abilities.machine_code
        if machine_code is None or not has_native_form(definition, self._options, SIZE):
            return
        guest, engine = machine_code(), self._guest.kernel.engine
        asked = {
            "ask_drain": self._guarded(lambda _: self.drain()),
            "ask_show": self._guarded(show),
            "ask_now": self._guarded(lambda _: self._guest.now()),
            "ask_tid": self._guarded(lambda _: self._guest.thread().tid),
            "ask_pid": self._guarded(lambda _: self._guest.thread().pid),
        }
        symbols = {
            **guest.symbols,
            **{name: function_address(function) for name, function in asked.items()},
            "buffer": self._words.address,
            "env": engine.cpu.env,
            "handle": engine.cpu.handle,
            "register_read": library.address("uc_reg_read"),
        }
        code = EventCode(definition, self._guest.isa, guest, self._options).module
        linked = Linked(code.compiled("event"), symbols)
        runs.use(linked.address("run"), (linked, asked))

    def _guarded(self, function: Callable[[int], object]) -> Any:
        """Return a function for machine code, which no Python exception leaves."""

        def call(argument: int) -> int:
            try:
                result = function(argument)
            except BaseException as error:  # noqa: BLE001  raised again by the engine
                self._guest.kernel.engine.handlers.fail(error)
                return 0
            return result if isinstance(result, int) else 0

        return _ASKED(call)
