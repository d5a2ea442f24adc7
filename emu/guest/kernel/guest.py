"""The kernel guest: boots the teaching kernel and serves its gates, its clock and its breakpoints.

Two trap paths, chosen per run (`TrapPath`), with equal results: on a breakpoint in kernel text

* HOST: the emulator asks the handlers at once and carries out the displaced instruction's plan;
* GUEST: the CPU takes the exception into the kernel's own vector, whose code saves a trap frame, calls the gate
  `dtrace_invop`, and emulates the instruction itself, as FreeBSD's dtrace_asm.S and dtrace_subr.c
  do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Protocol

from emu.calls import pass_arguments
from emu.displaced import DisplacedTable
from emu.elf import ElfError, Image, Symbol, symbol_size
from emu.engine.clock import DEFAULT_RATE, NANOSECONDS, VirtualClock
from emu.engine.engine import Engine
from emu.engine.errors import GuestCrashError
from emu.engine.pages import PAGE
from emu.engine.state import DELIVER, HANDLED
from emu.frame import Frame, LiveFrame, SavedFrame
from emu.guest.base import BadAddressError, Location, RunState, Thread
from emu.guest.kernel import images, initrd, krtld
from emu.guest.kernel.introspection import Introspection
from emu.guest.kernel.modules import Modules
from emu.guest.kernel.panic import KernelPanicError
from emu.guest.kernel.served import Served
from emu.guest.kernel.stacks import KernelStacks
from emu.guest.kernel.traced import TracedStretches
from emu.guest.kernel.userland import Userland
from emu.guest.modules import Module
from emu.guest.timers import Timers
from emu.host_trap import HostTrap
from emu.isa.base import Isa
from emu.patcher import CodeMemory, Patcher
from emu.trap import TrapHandler

RAM = 64 << 20
# Wall time at power on: a constant, so that a run is the same every day.
EPOCH = 1_700_000_000 * NANOSECONDS
# Virtual time within which the kernel must be up.
BOOT_LIMIT = 10 * NANOSECONDS
# Where the stack ends that the kernel starts on, if its arguments come on one.
_BOOT_STACK = 0x1000
_TEXT_LIMIT = 1024
_PROT_EXEC = 4
_PROBE_ARGUMENTS = 5
# Bytes below the kernel's stack pointer that a call from outside leaves alone.
_RED_ZONE = 256
# Of the stack, for a call from outside: the return address, and arguments if they are passed there.
_CALL_WORDS = 5
_SYMBOL_ALIGNMENT = 64
_ENXIO = 6
_EBUSY = 16


class TrapPath(Enum):
    """Who handles a breakpoint in kernel text."""

    HOST = "host"
    GUEST = "guest"


class Consumers(Protocol):
    """Who serves the guest's /dev/dtrace/dtrace."""

    def open(self) -> int:
        """Return the number of a new consumer."""
        ...

    def close(self, consumer: int) -> None:
        """Let a consumer go."""
        ...

    def ioctl(self, consumer: int, command: int, data: int) -> int:
        """Answer a request with an error number, 0 for none; `data` is the kernel's copy of its argument."""
        ...


class KernelGuest(Served):
    """The teaching kernel on one emulated CPU.  Implements `emu.guest.base.Guest`.

    `files` are added to the initial file system, or replace files of it (path without leading slash
    -> content; /etc/rc is the start-up script).  `console` gets what the guest prints.  `patcher`
    makes what writes breakpoints, and `displaced` says what the host's trap path does, if not the
    ISA's table.  Call `boot` first.
    """

    cpu = 0

    def __init__(
        self,
        isa: Isa,
        *,
        trap_path: TrapPath = TrapPath.HOST,
        traps: TrapHandler | None = None,
        files: Mapping[str, bytes] | None = None,
        image: Path | None = None,
        console: Callable[[bytes], object] = lambda _text: None,
        console_input: bytes = b"",
        rate: int = DEFAULT_RATE,
        ram: int = RAM,
        accelerated: bool | None = None,
        patcher: Callable[[CodeMemory], Patcher] = Patcher,
        displaced: DisplacedTable | None = None,
    ) -> None:
        self.isa = isa
        self.trap_path = trap_path
        self.image = Image(image or images.built(isa) / "kernel", isa=isa)
        self.probe_calls = krtld.probe_calls(self.image)
        """Where the kernel has nops instead of calls, for illumos's SDT."""
        self.engine = Engine(isa, ram, accelerated=accelerated)
        self.clock = VirtualClock(self.engine, rate)
        self.now = self.clock.now
        """Returns virtual nanoseconds since power on."""
        self.patcher = patcher(self.engine)
        self.traps = traps or TrapHandler()
        self.exit_status: int | None = None
        self.waits_for_timers = False
        """Whether the power stays on while a timer runs: process 1 sleeps then, and nothing but
        the timers happens."""
        self._asleep = False
        self.on_probe: Callable[..., object] = lambda *_: None
        """Called with what the kernel passes to `dtrace_probe`: an id and five arguments."""
        self.modules = Modules(self.engine, self.image, self.patcher.original)
        self.on_module_loaded: Callable[[Module], object] = lambda _module: None
        """Called when the kernel has loaded a file."""
        self.on_module_unload: Callable[[Module], bool] = lambda _module: True
        """Called when a file is about to go; False: it must not."""
        self.consumers: Consumers | None = None
        """Who serves /dev/dtrace/dtrace; None: nobody."""
        self._console = console
        self._input = console_input
        self.introspection = Introspection(self.engine, self.image)
        self._live = LiveFrame(self.engine)
        self._stacks = KernelStacks(self.engine, self.traps.core, self.introspection, self.patcher)
        self._pc_after = isa.traps.pc_after
        self.probe_frames: int | None = None
        """While the kernel calls `dtrace_probe`: how many frames of that call a stack leaves out;
        None otherwise."""
        self._passed = [isa.registers.slots[name] for name in isa.calling.arguments[: 1 + _PROBE_ARGUMENTS]]
        """Where the gate `dtrace_probe` finds its arguments, if not on the stack."""
        self._results = [isa.registers.slots[name] for name in isa.calling.results]
        self._tick: int | None = None
        self._next_tick = 0
        self._idle = False
        self._ready = False
        self._uncounted = 0
        """Displaced instructions the engine did not count: a breakpoint counts as one, an invalid
        opcode does not."""
        self._interrupted = False
        self._actions: list[Callable[[], object]] = []
        self._running = False
        self._probe_taken = False
        self.timers = Timers()
        self.host_trap = HostTrap(
            self.engine,
            self.traps,
            self.patcher,
            unclaimed=lambda _address: DELIVER,
            faulted=self._displaced_fault,
            below=self._user_breakpoint,
            lowest=isa.kernel_start,
            table=displaced,
        )
        if trap_path is TrapPath.HOST:
            self.host_trap.attach()
        else:
            self.engine.on_breakpoint = self._enter_vector
        self.engine.on_trap = self._trap
        self.userland = Userland(self)
        """The user programs."""
        text = self.image.segments[0]
        self.text_end = text.vaddr + text.memsz
        """Where the kernel's text, and what the boot loader has put behind it, ends."""
        self._files = images.programs(isa) | dict(files or {})
        self._load(initrd.archive(self._files))
        self._serve_gates()

    # -- start

    def _load(self, archive: bytes) -> None:
        memory = self.engine.memory
        end = 0
        for segment in self.image.segments:
            end = max(end, segment.paddr + segment.memsz)
            if end > memory.size:
                raise GuestCrashError(f"the kernel image ends at {end:#x}, past the {memory.size >> 20} MiB of RAM", 0)
            memory.ram[segment.paddr : segment.paddr + len(segment.data)] = segment.data
        for call in self.probe_calls:
            place = call.offset - 1 - self.isa.kernel_base
            memory.ram[place : place + len(krtld.NOPS)] = krtld.NOPS
        start = (memory.size - len(archive)) & ~0xFFF
        if start < end:
            raise GuestCrashError(f"the initial file system of {len(archive) >> 20} MiB does not fit into RAM", 0)
        memory.ram[start : start + len(archive)] = archive
        self._load_symbols()
        self.engine.write_register(self.isa.registers.sp, _BOOT_STACK - 4 * self.isa.word)
        pass_arguments(self.engine, (memory.size, start, len(archive)))
        self.engine.pc = self.image.entry

    def _load_symbols(self) -> None:
        """Put the kernel's symbol table behind its text, as FreeBSD's boot loader leaves it for the linker."""
        memory, text = self.engine.memory, self.image.segments[0]
        symbols, strings = self.image.section(".symtab"), self.image.section(".strtab")
        if symbols is None or strings is None:
            return  # stripped: the kernel can load no modules
        start = text.vaddr + text.memsz
        table = start + -start % _SYMBOL_ALIGNMENT
        names = table + len(symbols.data)
        self.text_end = names + len(strings.data)
        memory.ram[table - text.vaddr + text.paddr :][: len(symbols.data)] = symbols.data
        memory.ram[names - text.vaddr + text.paddr :][: len(strings.data)] = strings.data
        values = {"ksymtab": table, "ksymtab_count": len(symbols.data) // symbol_size(self.isa.word), "kstrtab": names}
        for name, value in values.items():
            place = self.image.symbol(name).value - text.vaddr + text.paddr
            memory.ram[place : place + self.isa.word] = value.to_bytes(self.isa.word, "little")

    def boot(self) -> None:
        """Run until the kernel is up and process 1 is about to enter user mode.  Raises `KernelPanicError`."""
        if self.run(BOOT_LIMIT) is RunState.FINISHED or not self._ready:
            raise self._crash(f"the kernel was not up after {BOOT_LIMIT // NANOSECONDS} virtual seconds")

    # -- gates

    def _serve_gates(self) -> None:
        gates: dict[str, Callable[..., int | None]] = {
            "gate_ready": self._gate_ready,
            "gate_console_write": self._gate_console_write,
            "gate_console_read": self._gate_console_read,
            "gate_poweroff": self._gate_poweroff,
            "gate_panic": self._gate_panic,
            "gate_nanouptime": lambda *_: self.clock.now(),
            "gate_clock_start": self._gate_clock_start,
            "gate_icache_sync": self._gate_icache_sync,
            "dtrace_invop": self._gate_invop,
            "dtrace_kld_load": self._gate_kld_load,
            "dtrace_kld_unload_try": self._gate_kld_unload_try,
            "dtrace_dev_open": lambda *_: self.consumers.open() if self.consumers else 0,
            "dtrace_dev_close": self._gate_dev_close,
            "dtrace_dev_ioctl": self._gate_dev_ioctl,
        }
        for name, gate in gates.items():
            self.serve(name, gate)
        self._callouts, self._ticks = (self.image.symbol(name).value for name in ("callout_queue", "ticks"))
        self.engine.on_code(self.image.symbol("gate_call_return").value, self.engine.stop)
        self.engine.on_code(self.image.symbol("dtrace_probe").value, self._gate_probe)
        self._traced = TracedStretches(self.engine, self.image, self.clock)
        # What user addresses mean changes with the page tables, and they change here only.
        self.engine.on_code(self.image.symbol("pmap_activate").value, self.engine.forget_user_blocks)
        self.engine.on_code(self.image.symbol("pmap_enter").value, self._map_page)
        # The return instruction itself still belongs to the probe.
        self.engine.on_code(self.image.symbol("dtrace_invop_return").value, lambda: self._resume(1))

    def serve(self, name: str, gate: Callable[..., int | None]) -> None:
        """Have a gate answered by a function of its first three arguments, whose result it returns."""
        self.engine.on_code(self.image.symbol(name).value, self._caller_of(gate))

    def call(self, name: str, *arguments: int) -> int:
        """Have the kernel's own code run one of its functions, between two runs, and return its result.

        It takes no virtual time, and leaves the CPU as it was.
        """
        engine, isa = self.engine, self.isa
        if self._running:
            raise RuntimeError(f"{name}: the guest is running")
        context, before, time = engine.new_context(), engine.instructions, self.clock.state()
        if not isa.is_kernel_address(engine.pc):
            engine.interrupt()  # as the clock would: into kernel mode
        offset = self.introspection.offset
        thread = engine.load(self.introspection.current, isa.word)
        size = engine.load(thread + offset["TD_KSTACK_SIZE"], isa.word)
        stack = engine.load(thread + offset["TD_KSTACK"], isa.word) + size
        sp = isa.registers.slots[isa.registers.sp]
        low = engine.words[sp]
        if not 0 <= stack - low <= size:
            low = stack - offset["TF_SIZE"]
        engine.words[sp] = (low - _RED_ZONE) & ~0xF
        back = self.image.symbol("gate_call_return").value
        if isa.registers.link is None:
            for _ in range(_CALL_WORDS):  # the gate's own return must lead somewhere, too
                engine.words[sp] -= isa.word
                engine.store(engine.words[sp], isa.word, back)
        else:
            engine.words[isa.registers.slots[isa.registers.link]] = back
        pass_arguments(engine, arguments)
        engine.pc = self.image.symbol(name).value
        try:
            engine.run()
        except GuestCrashError as error:
            raise self._crash(str(error)) from None
        result = engine.words[self._results[0]]
        executed = engine.instructions - before
        engine.restore(context)
        engine.discount(executed)
        self.clock.set_state(time)
        return result

    def soon(self, action: Callable[[], object]) -> None:
        """Do something between two runs: now, or before the guest executes its next block."""
        if not self._running:
            action()
            return
        self._actions.append(action)
        self.engine.stop()

    def _map_page(self) -> None:
        # pmap_enter(pmap, va, pa, prot): a page that will be executed may have held another program's text, and Unicorn
        # does not see the kernel fill it through the linear map, which is not executable.
        _pmap, _address, physical, protection, _ = self._live.arguments()
        if protection & _PROT_EXEC:
            self.engine.forget_code(physical, PAGE)

    def _caller_of(self, gate: Callable[..., int | None]) -> Callable[[], None]:
        words, arguments, mask = self.engine.words, self._live.arguments, self.isa.address_mask
        first, second = self._results
        bits = 8 * self.isa.word

        def call() -> None:
            a, b, c, _, _ = arguments()
            result = gate(a, b, c)
            if result is not None:
                words[first] = result & mask
                if bits < 64:  # a pair of registers
                    words[second] = result >> bits & mask

        return call

    def _gate_ready(self, *_: int) -> None:
        self._ready = True
        self.interrupt()

    def _gate_console_write(self, address: int, size: int, _: int) -> None:
        self._console(self.engine.read(address, size))

    def _gate_console_read(self, address: int, size: int, _: int) -> int:
        text, self._input = self._input[:size], self._input[size:]
        self.engine.memory.write(address, text)
        return len(text)

    def _gate_poweroff(self, status: int, *_: int) -> None:
        if self.waits_for_timers and self.timers.running:
            self._asleep = True
            return
        self.exit_status = status & 0xFF
        self.engine.stop()

    def _gate_panic(self, message: int, frame: int, _: int) -> None:
        text = self._text(message)
        raise self._crash(text, SavedFrame(self.engine, frame) if frame else self._live)

    def _gate_clock_start(self, interval: int, *_: int) -> None:
        self._tick = interval
        self._next_tick = self.clock.now() + interval

    def _gate_dev_close(self, consumer: int, *_: int) -> None:
        if self.consumers is not None:
            self.consumers.close(consumer)

    def _gate_dev_ioctl(self, consumer: int, command: int, data: int) -> int:
        return _ENXIO if self.consumers is None else self.consumers.ioctl(consumer, command, data)

    def _gate_icache_sync(self, address: int, size: int, _: int) -> None:
        self.engine.forget_code(address - self.isa.kernel_base, size)

    def _gate_kld_load(self, file: int, *_: int) -> None:
        self.on_module_loaded(self.modules.add(file))

    def _gate_kld_unload_try(self, file: int, *_: int) -> int:
        module = self.modules.get(file)
        if module is not None and not self.on_module_unload(module):
            return _EBUSY
        self.modules.remove(file)
        return 0

    def _gate_invop(self, address: int, frame: int, extra: int) -> int:
        rval = self.traps.invop(address, SavedFrame(self.engine, frame, self._pc_after), extra)
        if not rval:
            self._resume()  # not a probe: its handling takes time as any trap's does
        return rval

    def _gate_probe(self) -> None:
        words = self.engine.words
        if self._passed:
            probe_id, *arguments = (words[slot] for slot in self._passed)
        else:
            first = self.isa.calling.stack_arguments // self.isa.word
            probe_id, *arguments = (self._live.stack_word(first + index) for index in range(1 + _PROBE_ARGUMENTS))
        self.on_probe(probe_id & 0xFFFF_FFFF, *arguments)

    # -- traps

    def _user_breakpoint(self, address: int) -> int:
        return self.userland.breakpoint(address)

    def _enter_vector(self, _address: int) -> int:
        self.clock.pause()  # until the handler is done
        return DELIVER

    def _trap(self, number: int) -> int:
        if self.isa.is_kernel_address(self.engine.pc):
            return self._invalid_opcode(number) if self.probe_calls else DELIVER
        self._leave_probe()
        return HANDLED if self.userland.exception(number) else DELIVER

    def probe_taken(self, *, claimed: bool) -> None:
        """Be told that the kernel has asked about a breakpoint of user mode."""
        if not claimed:
            self.clock.resume()  # its handling takes time as any trap's does
        else:
            self._probe_taken = True
            self.engine.stop_in_user_mode()

    def _resume(self, extra: int = 0) -> None:
        """Start the clock after a trap, unless the trap was met where it stood still anyway."""
        if not self._traced.inside:
            self.clock.resume(extra - self._uncounted)
            self._uncounted = 0

    def _invalid_opcode(self, number: int) -> int:
        """Take illumos's LOCK NOP as the breakpoint that it is; of anything else the guest's own vector decides."""
        pc = self.engine.pc
        if number != self.isa.unicorn.undefined or pc < self.isa.kernel_start:
            return DELIVER
        self.clock.pause()
        self._uncounted = 1
        if self.trap_path is TrapPath.GUEST:
            return DELIVER
        answer = self.host_trap.take(pc)
        self._resume()
        return answer

    def _displaced_fault(self, _address: int, error: BadAddressError) -> int:
        raise self._crash(f"the displaced instruction cannot reach {error.address:#x}") from None

    def _leave_probe(self) -> None:
        """Start the clock again, if it was a probe that user mode has come back from."""
        if self._probe_taken:
            self._probe_taken = False
            self.clock.resume()

    # -- running

    def run(self, deadline: int | None) -> RunState:
        """Run until virtual time `deadline` (None: for ever), or until power off.  Raises `KernelPanicError`."""
        return self.timers.run(self._run, self.clock.now, deadline, self._come_back)

    def pc(self) -> int:
        """Return where the CPU is."""
        return self.engine.pc

    def _run(self, deadline: int | None) -> RunState:
        self._interrupted = False
        while self.exit_status is None:
            if self._idle and self._asleep:
                wakes = self._next_callout()
                if deadline is not None and (wakes is None or deadline < wakes):
                    self._sleep_until(deadline)
                    return RunState.RUNNING
                if wakes is not None:
                    self._sleep_until(wakes - 1)
            now = self.clock.now()
            tick_due = self._tick is not None and now >= self._next_tick
            if self._idle:
                if not tick_due:
                    if deadline is not None and (self._tick is None or deadline < self._next_tick):
                        self.clock.skip_to(deadline)
                        return RunState.RUNNING
                    if self._tick is None:
                        raise self._crash("every process waits and no clock interrupt was asked for")
                    self.clock.skip_to(self._next_tick)
                self._idle = False
                self._deliver_tick()
            elif tick_due and not self.isa.is_kernel_address(self.engine.pc):
                self._deliver_tick()
            elif self._interrupted or (deadline is not None and now >= deadline):
                return RunState.RUNNING
            self._advance(deadline)
        return RunState.FINISHED

    def _next_callout(self) -> int | None:
        """Return when a clock interrupt calls the first function of the callout queue; None: the queue is empty."""
        first = self.engine.load(self._callouts, self.isa.word)
        if self._tick is None or not first:
            return None
        due = self.engine.load(first + self.introspection.offset["C_TIME"], 8)
        return self._next_tick + max(0, due - self.engine.load(self._ticks, 8) - 1) * self._tick

    def _sleep_until(self, deadline: int) -> None:
        """Let time pass in which no process wakes, and count its clock interrupts (FreeBSD hardclock_sync)."""
        self.clock.skip_to(deadline)
        if self._tick is not None and deadline >= self._next_tick:
            missed = (deadline - self._next_tick) // self._tick + 1
            self._next_tick += missed * self._tick
            self.engine.store(self._ticks, 8, self.engine.load(self._ticks, 8) + missed)

    def _deliver_tick(self) -> None:
        self._next_tick = self.clock.now() + (self._tick or 0)
        self.engine.interrupt()

    def _advance(self, deadline: int | None) -> None:
        soft = None if self._tick is None else self.clock.instructions_at(self._next_tick)
        if self._probe_taken:
            soft = 0  # the clock stands still until the probe's thread is back in user mode
        hard = None if deadline is None else self.clock.instructions_at(deadline)
        self._running = True
        try:
            self._idle = self.engine.run(soft, hard)
        except GuestCrashError as error:
            raise self._crash(str(error)) from None
        finally:
            self._running = False
        if not self.isa.is_kernel_address(self.engine.pc):
            self._leave_probe()
        while self._actions:
            self._actions.pop(0)()

    def interrupt(self) -> None:
        """Make the run under way return soon."""
        self.timers.interrupt()
        self._come_back()

    def _come_back(self) -> None:
        self._interrupted = True
        self.engine.stop()

    def _crash(self, reason: str, frame: Frame | None = None) -> KernelPanicError:
        frame = frame or self._live
        registers = {}
        for register in self.isa.registers.registers:
            if register.slot is not None and register.name != self.isa.registers.zero:
                try:
                    registers[register.name] = frame.register(register.name)
                except (KeyError, BadAddressError):
                    continue
        pc = registers.get(self.isa.registers.pc, 0)
        try:
            chain = self.introspection.kernel_chain(registers.get(self.isa.registers.fp, 0))
        except BadAddressError:
            chain = []
        return KernelPanicError(reason, registers, [self._name(address) for address in (pc, *chain)])

    def _name(self, address: int) -> str:
        place = self.locate(address)
        if place is None:
            return f"{address:#x}"
        if not place.symbol:
            return f"{place.module}`{address:#x}"
        return f"{place.module}`{place.symbol}" + (f"+{place.offset:#x}" if place.offset else "")

    # -- what the framework sees

    def wall(self) -> int:
        """Return virtual nanoseconds since 1970."""
        return EPOCH + self.clock.now()

    def thread(self) -> Thread:
        """Return the current thread."""
        return self.introspection.thread()

    def load(self, address: int, size: int) -> bytes:
        """Read kernel memory.  Raises `BadAddressError`."""
        if not self.isa.is_kernel_address(address):
            raise BadAddressError(address)
        return self.engine.read(address, size)

    def store(self, address: int, data: bytes) -> None:
        """Write the kernel's data.  Raises `BadAddressError`."""
        if not self.isa.is_kernel_address(address):
            raise BadAddressError(address)
        self.engine.memory.write(address, data)

    def serve_probes(self, probe: Callable[..., None]) -> None:
        """Have `probe(id, arg0 ... arg4)` called whenever the kernel calls `dtrace_probe`."""
        self.on_probe = probe

    def watch_traced(self) -> None:
        """Be told that probes will be on which the kernel itself calls: their work is not to take the guest's time."""
        self._traced.watch()

    def call_argument(self, index: int) -> int:
        """Return argument `index` >= 5 of the call of `dtrace_probe` under way, which has its id before argument 0."""
        return self._live.argument(index + 1)

    def linker_set(self, name: str) -> tuple[int, int] | None:
        """Return the address and the size of a linker set of the kernel, None if there is none of that name."""
        section = self.image.section(name)
        return None if section is None else (section.address, len(section.data))

    def symbol_address(self, name: str) -> int | None:
        """Return the address of a symbol of the kernel, None if there is none."""
        try:
            return self.image.symbol(name).value
        except ElfError:
            return None

    def symbol_at(self, address: int) -> tuple[Symbol, int] | None:
        """Return the kernel's symbol an address is in, and how far."""
        return self.image.symbol_at(address)

    def module_file(self, name: str) -> bytes | None:
        """Return the file of a module as the initial file system has it; None if there is none of that name there."""
        return next((data for path, data in self._files.items() if path.rpartition("/")[2] == name), None)

    def thread_field(self, name: str) -> int:
        """Return a word of the current thread, by the name of its offset in `kernel_assym`."""
        return self.introspection.thread_field(name)

    def user_load(self, address: int, size: int) -> bytes:
        """Read memory of the current process.  Raises `BadAddressError`."""
        if self.isa.is_kernel_address(address) or self.isa.is_kernel_address(address + size):
            raise BadAddressError(address)
        return self.engine.read(address, size)

    def user_store(self, address: int, data: bytes) -> None:
        """Write memory of the current process.  Raises `BadAddressError`."""
        if self.isa.is_kernel_address(address) or self.isa.is_kernel_address(address + len(data)):
            raise BadAddressError(address)
        self.engine.memory.write(address, data)

    def kernel_stack(self) -> list[int]:
        """Return the kernel pcs of the interrupted context, innermost first."""
        return self._stacks.pcs(self.probe_frames)

    def user_frame(self) -> Frame | None:
        """Return the registers with which the current thread left user mode, None if it never was there (uregs[])."""
        if not self.isa.is_kernel_address(self.engine.pc):
            return self._live
        saved = self.introspection.user_frame()
        return None if saved is None else SavedFrame(self.engine, saved)

    def user_stack(self) -> list[int]:
        """Return the user pcs of the current thread, innermost first."""
        frame = self.user_frame()
        return [] if frame is None else self.userland.objects.stack(frame)

    def locate(self, address: int) -> Location | None:
        """Name a kernel address."""
        if not self.isa.is_kernel_address(address):
            return None
        place = self.modules.locate(address)
        if place is not None:
            return Location(*place)
        found = self.image.caller_at(address)
        if found is not None:
            symbol, offset = found
            return Location("kernel", symbol.name, offset)
        text = self.image.segments[0]
        inside = text.vaddr <= address < text.vaddr + text.memsz
        return Location("kernel", "", address - text.vaddr) if inside else None

    def locate_user(self, address: int, pid: int | None = None) -> Location | None:
        """Name an address of a process; of one that has ended, as it last was."""
        if self.isa.is_kernel_address(address):
            return None
        return self.userland.objects.locate(address, pid)

    def _text(self, address: int) -> str:
        data = bytearray()
        while len(data) < _TEXT_LIMIT:
            try:
                byte = self.engine.load(address + len(data), 1)
            except BadAddressError:
                break
            if not byte:
                break
            data.append(byte)
        return data.decode("utf-8", "replace")
