"""The kernel guest's gates.

Gates are functions of the kernel that the emulator implements (testbins/kernel/sys/gates.def).

A gate's body is only a return instruction.  When the CPU reaches it, the engine calls `Gates`,
which reads the arguments by the calling convention, does the work, and sets the result registers;
then the CPU executes the return.

The gate `dtrace_probe(id, arg0, ... arg4)` fires a probe that the kernel calls.  The first call of
a probe goes to Python; machine code serves the next ones with the `Firing` that a table has for the
id.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final, Protocol

from emu.displaced.frame import Frame
from emu.engine.hits.hit_steps import ARGUMENTS, Argument, InMemory, Register
from emu.engine.hits.tracepoint_blocks import Firing
from emu.engine.hits.watched import Calls, Watched, WatchKind
from emu.engine.memory.pages import PAGE
from emu.guest.kernel.panic import KernelPanicError
from emu.guest.kernel.view import KernelView
from emu.guest.modules import Module
from emu.probe.trap_frames import SavedFrame
from emu.support.words import BadAddressError

# The initial number of ids in the table.
_SIZE: Final = 1 << 12


class ProbeCalls:
    """The probes of one guest's kernel."""

    def __init__(self, guest: KernelView) -> None:
        self._guest = guest
        core = guest.traps.core
        guest.engine.tracepoints.calling = core
        self._calls = Calls(core.address, frames=ctypes.addressof(guest.frames))
        self.watched = Watched(WatchKind.CALL, calls=self._calls.address)
        """For the hook of `dtrace_probe`."""
        self._arguments = self._locate()
        self._known: dict[int, Firing] = {}
        self._table: Any = None
        self._grow(_SIZE)
        guest.probe_calls_changed = self.forget

    def _locate(self) -> list[Argument]:
        """Return the locations of the arguments after the id."""
        isa = self._guest.isa
        calling = isa.calling
        if calling.arguments:
            return [Register(name) for name in calling.arguments[1 : 1 + ARGUMENTS]]
        first = calling.stack_arguments + isa.word
        return [InMemory(isa.registers.sp, first + isa.word * index, isa.word) for index in range(ARGUMENTS)]

    def store(self, probe_id: int) -> None:
        """Let machine code fire a probe from now on, if it can."""
        if probe_id in self._known:
            return
        called = self._guest.describe_probe(probe_id)
        if not called.runs:
            return
        firing = Firing(called.runs, 1, frames=0 if called.frames is None else called.frames + 1)
        self._guest.engine.tracepoints.locate(firing, self._arguments)
        self._known[probe_id] = firing
        if probe_id >= self._calls.limit:
            self._grow(2 * probe_id)
        self._table[probe_id] = firing.address

    def forget(self) -> None:
        """Let Python fire all probes again."""
        self._known = {}
        self._grow(_SIZE)

    def _grow(self, size: int) -> None:
        self._table = (ctypes.c_uint64 * size)()
        for probe_id, firing in self._known.items():
            if probe_id < size:
                self._table[probe_id] = firing.address
        self._calls.firings, self._calls.limit = ctypes.addressof(self._table), size


_TEXT_LIMIT: Final = 1024
_PROT_EXEC: Final = 4
_PROBE_ARGUMENTS: Final = 5
_ENXIO: Final = 6
_EBUSY: Final = 16

# Computes a gate's result from its first three arguments; None: its result is void.
Gate = Callable[[int, int, int], int | None]


class Consumers(Protocol):
    """Serves the guest's /dev/dtrace/dtrace."""

    def open(self) -> int:
        """Return the number of a new consumer."""
        ...

    def close(self, consumer: int) -> None:
        """Close a consumer."""
        ...

    def ioctl(self, consumer: int, command: int, data: int) -> int:
        """Answer a request with an error number, 0 for none.

        `data` is the kernel's copy of its argument.
        """
        ...


class Gated(Protocol):
    """The interface of the guest for the kernel's gates (`emu.guest.kernel.guest`)."""

    ready: bool
    console: Callable[[bytes], object]
    consumers: Consumers | None
    on_module_loaded: Callable[[Module], object]
    on_module_unload: Callable[[Module], bool]

    def interrupt(self) -> None:
        """Make the current run return soon."""
        ...

    def start_clock(self, interval: int) -> None:
        """Send the kernel a clock interrupt every `interval` nanoseconds from now on."""
        ...

    def power_off(self, status: int) -> None:
        """End the run."""
        ...

    def crash(self, reason: str, frame: Frame | None = None) -> KernelPanicError:
        """Return the error of a guest that cannot continue."""
        ...


class Gates:
    """Implements the gates of one guest; `invop` implements `dtrace_invop`."""

    def __init__(self, guest: KernelView, host: Gated, invop: Gate, console_input: bytes) -> None:
        self._guest = guest
        self._host = host
        self._engine = guest.engine
        self._input = console_input
        isa = guest.isa
        self._results = [isa.registers.slots[name] for name in isa.calling.results]
        self._passed = [isa.registers.slots[name] for name in isa.calling.arguments[: 1 + _PROBE_ARGUMENTS]]
        """The place of the arguments of `dtrace_probe`, if not the stack."""
        gates: dict[str, Gate] = {
            "gate_ready": self._ready,
            "gate_console_write": self._console_write,
            "gate_console_read": self._console_read,
            "gate_poweroff": self._poweroff,
            "gate_panic": self._panic,
            "gate_clock_start": self._clock_start,
            "gate_icache_sync": self._icache_sync,
            "dtrace_invop": invop,
            "dtrace_kld_load": self._kld_load,
            "dtrace_kld_unload_try": self._kld_unload_try,
            "dtrace_dev_open": lambda *_: host.consumers.open() if host.consumers else 0,
            "dtrace_dev_close": self._dev_close,
            "dtrace_dev_ioctl": self._dev_ioctl,
        }
        for name, gate in gates.items():
            self.serve(name, gate)
        # The kernel asks for the time at every switch of threads.
        clock = guest.clock
        timed = Watched(WatchKind.TIME, clock=clock.address, period=clock.period) if clock.period else None
        self.serve("gate_nanouptime", lambda *_: clock.now(), timed)
        # This one has more than three arguments, and is called at every firing.
        self._calls = ProbeCalls(guest)
        self._engine.code.on_code(guest.image.symbol("dtrace_probe").value, self._probe, self._calls.watched)
        # The meaning of user addresses changes with the page tables, and only these two functions change them.
        self._watch("pmap_activate", self._engine.counter.forget_user_blocks)
        self._watch("pmap_enter", self._map_page)

    def _watch(self, name: str, function: Callable[[], None], watched: Watched | None = None) -> None:
        self._engine.code.on_code(self._guest.image.symbol(name).value, function, watched)

    def serve(self, name: str, gate: Gate, watched: Watched | None = None) -> None:
        """Implement a gate by a function of its first three arguments.

        Machine code does what `watched` says, where it can.
        """
        words, arguments, mask = self._engine.words, self._guest.live.arguments, self._guest.isa.address_mask
        first, second = self._results
        bits = 8 * self._guest.isa.word

        def call() -> None:
            a, b, c, _, _ = arguments()
            result = gate(a, b, c)
            if result is not None:
                words[first] = result & mask
                if bits < 64:  # 64 bits are returned in a pair of registers
                    words[second] = result >> bits & mask

        self._watch(name, call, watched)

    # -- the machine

    def _ready(self, *_: int) -> None:
        self._host.ready = True
        self._host.interrupt()

    def _console_write(self, address: int, size: int, _: int) -> None:
        self._host.console(self._engine.read(address, size))

    def _console_read(self, address: int, size: int, _: int) -> int:
        text, self._input = self._input[:size], self._input[size:]
        self._engine.memory.write(address, text)
        return len(text)

    def _poweroff(self, status: int, *_: int) -> None:
        self._host.power_off(status & 0xFF)

    def _panic(self, message: int, frame: int, _: int) -> None:
        raise self._host.crash(self._text(message), SavedFrame(self._engine, frame) if frame else None)

    def _text(self, address: int) -> str:
        data = bytearray()
        while len(data) < _TEXT_LIMIT:
            try:
                byte = self._engine.load(address + len(data), 1)
            except BadAddressError:
                break
            if not byte:
                break
            data.append(byte)
        return data.decode("utf-8", "replace")

    def _clock_start(self, interval: int, *_: int) -> None:
        self._host.start_clock(interval)

    def _icache_sync(self, address: int, size: int, _: int) -> None:
        self._engine.code.forget(address - self._guest.isa.kernel_base, size)

    def _map_page(self) -> None:
        # pmap_enter(pmap, va, pa, prot): a page that will be executed may have held another program's text, and Unicorn
        # does not see the kernel fill it through the linear map, which is not executable.
        _pmap, _address, physical, protection, _ = self._guest.live.arguments()
        if protection & _PROT_EXEC:
            self._engine.code.forget(physical, PAGE)

    # -- DTrace

    def _probe(self) -> None:
        """Fire a probe: `dtrace_probe(id, arg0, ... arg4)`."""
        guest, words = self._guest, self._engine.words
        if self._passed:
            probe_id, *arguments = (words[slot] for slot in self._passed)
        else:
            first = guest.isa.calling.stack_arguments // guest.isa.word
            probe_id, *arguments = (guest.live.stack_word(first + index) for index in range(1 + _PROBE_ARGUMENTS))
        number = probe_id & 0xFFFF_FFFF
        guest.on_probe(number, *arguments)
        self._calls.store(number)

    def _dev_close(self, consumer: int, *_: int) -> None:
        if self._host.consumers is not None:
            self._host.consumers.close(consumer)

    def _dev_ioctl(self, consumer: int, command: int, data: int) -> int:
        consumers = self._host.consumers
        return _ENXIO if consumers is None else consumers.ioctl(consumer, command, data)

    def _kld_load(self, file: int, *_: int) -> None:
        self._host.on_module_loaded(self._guest.modules.add(file))

    def _kld_unload_try(self, file: int, *_: int) -> int:
        module = self._guest.modules.get(file)
        if module is not None and not self._host.on_module_unload(module):
            return _EBUSY
        self._guest.modules.remove(file)
        return 0
