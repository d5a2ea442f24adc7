"""The function guest: bytes, or one function of an ELF file, called from Python.

The smallest thing that can be probed, and the fastest to test.  It is a `Guest` too: D programs see
one thread named "function".

    guest = FunctionGuest(X86_64, bytes.fromhex("8d0437c3"))   # lea eax,[rdi+rsi]; ret
    assert guest.call(2, 3) == 5
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from emu.displaced.plans import takes_frame_back
from emu.elf.image import Image, SegmentFlag
from emu.engine.engine import Engine
from emu.engine.errors import GuestCrashError
from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE, PageMap
from emu.engine.time.clock import VirtualClock
from emu.guest.base import Abilities, Location, RunState, Thread
from emu.isa.base import Isa
from emu.probe.arguments import pass_arguments
from emu.probe.host_trap import HostTrap
from emu.probe.patcher import Patcher
from emu.probe.trap import TrapHandler
from emu.support.words import BadAddressError

if TYPE_CHECKING:
    from emu.native.guest import GuestCode

# The address of bytes that have no address of their own.
CODE: Final = 0x10000
STACK: Final = 0x7000_0000
STACK_SIZE: Final = 64 << 10
_HEAP: Final = 0x6000_0000
# The return address of the function.
LANDING: Final = 0x5000_0000
DEFAULT_LIMIT: Final = 100_000_000
_MODULE: Final = "function"
_THREAD: Final = Thread(address=0, tid=1, pid=1, ppid=0, execname="function")


class FunctionFaultError(Exception):
    """The function did something that is not permitted, or did not return; `pc` is its address."""

    def __init__(self, message: str, pc: int) -> None:
        super().__init__(message)
        self.pc = pc


class FunctionTraps(HostTrap):
    """Takes the exceptions of a function: all but those of probes are errors."""

    def unclaimed(self, address: int) -> int:
        """Refuse a breakpoint that no handler claims.  Raises `FunctionFaultError`."""
        raise FunctionFaultError(f"a breakpoint at {address:#x} that no probe claims", address)

    def faulted(self, address: int, error: BadAddressError) -> int:
        """Report a displaced instruction's invalid address.  Raises `FunctionFaultError`."""
        raise FunctionFaultError(
            f"the instruction displaced at {address:#x} cannot reach {error.address:#x}", address
        ) from error

    def trap(self, number: int) -> int:
        """Refuse an exception.  Raises `FunctionFaultError`."""
        raise FunctionFaultError(f"exception {number} at {self._engine.pc:#x}", self._engine.pc)


class FunctionGuest:
    """Code on a CPU of its own, with a stack; no kernel, no page tables.

    `code` is machine code for address `address`, or an `Image` whose segments are loaded at the
    addresses for which they are linked; then `call` takes the name of a function.  `beside`:
    another CPU, with which this one shares memory and handlers (`emu.guest.multiprocessor`).
    """

    def __init__(
        self,
        isa: Isa,
        code: bytes | Image,
        *,
        address: int = CODE,
        accelerated: bool | None = None,
        ram: int = 16 << 20,
        beside: FunctionGuest | None = None,
        patcher: Patcher | None = None,
    ) -> None:
        self.isa = isa
        self.cpu: int = 0 if beside is None else beside.cpu + 1
        """Its number (D's cpu)."""
        self._image = code if isinstance(code, Image) else None
        self._entry = address
        self._pages: PageMap = PageMap() if beside is None else beside._pages  # noqa: SLF001
        self.stack = STACK - 2 * STACK_SIZE * self.cpu
        """The address after its stack of STACK_SIZE bytes."""
        parts = self._parts(code, address)
        for start, data, size, access in parts:
            self._pages.map(start, max(size, len(data)), access)
        self._pages.map(LANDING, PAGE, Access.READ | Access.EXECUTE)
        self._pages.map(self.stack - STACK_SIZE, STACK_SIZE, Access.READ | Access.WRITE)
        self._pages.check(ram)
        self._ram = ram
        self._heap = _HEAP
        self.engine: Engine = Engine(
            isa,
            ram,
            pages=self._pages,
            on_system_call=self._on_system_call,
            accelerated=accelerated,
            shared=beside.engine.memory if beside else None,
        )
        self.clock = VirtualClock(self.engine)
        self.now = self.clock.now
        """Returns virtual nanoseconds since the guest was made."""
        self.abilities = Abilities(machine_code=self.machine_code)
        self.patcher = patcher or Patcher(self.engine)
        self.traps: TrapHandler = TrapHandler() if beside is None else beside.traps
        self.host_trap = FunctionTraps(self.engine, self.traps, self.patcher)
        self.host_trap.attach()
        for start, data, _, _ in parts:
            self.engine.memory.write(start, data)
        self.engine.memory.write(LANDING, isa.traps.wait)

    @staticmethod
    def _parts(code: bytes | Image, address: int) -> list[tuple[int, bytes, int, Access]]:
        if isinstance(code, bytes):
            return [(address, code, len(code), Access.READ | Access.EXECUTE)]
        access = {SegmentFlag[right.name]: right for right in Access if right.name}
        return [
            (
                segment.vaddr,
                segment.data,
                segment.memsz,
                Access(sum(granted for flag, granted in access.items() if segment.flags & flag)),
            )
            for segment in code.segments
        ]

    def allocate(self, data: bytes | int) -> int:
        """Put bytes (or that many zeros) into memory of their own and return the address.

        A page boundary follows.
        """
        content = bytes(data) if isinstance(data, int) else data
        address = self._heap
        size = -(-max(1, len(content)) // PAGE) * PAGE
        self._pages.map(address, size, Access.READ | Access.WRITE)
        self._pages.check(self._ram)
        self._heap += size + PAGE  # a gap, so that an access past the end faults
        self.engine.memory.write(address + size - len(content), content)
        return address + size - len(content)

    def place(self, address: int, data: bytes, access: Access) -> None:
        """Put bytes at an address of their own, beside the code.

        Raises `emu.engine.errors.EngineError` if there is not enough RAM.
        """
        self._pages.map(address, max(1, len(data)), access)
        self._pages.check(self._ram)
        self.engine.memory.write(address, data)

    def physical(self, address: int) -> int | None:
        """Return where in RAM an address is, None if nothing is mapped there."""
        return self._pages.reach(address, Access.READ)

    def prepare(self, *arguments: int, function: str | int | None = None) -> None:
        """Set the CPU to the function's first instruction, as after a call.

        `function` is a name or an address.  It returns to `LANDING`.  Raises
        `emu.elf.image.ElfError` for an unknown name.
        """
        engine = self.engine
        engine.pc = self._entry_of(function)
        sp = self.stack - 256
        if self.isa.registers.link is None:
            sp -= self.isa.word
            engine.store(sp, self.isa.word, LANDING)
        else:
            engine.write_register(self.isa.registers.link, LANDING)
        engine.write_register(self.isa.registers.sp, sp)
        engine.write_register(self.isa.registers.fp, 0)
        pass_arguments(engine, arguments)

    def _entry_of(self, function: str | int | None) -> int:
        if isinstance(function, int):
            return function
        return self._image.symbol(function).value if self._image and function else self._entry

    def call(self, *arguments: int, function: str | int | None = None, limit: int = DEFAULT_LIMIT) -> int:
        """Call the function and return its result, an unsigned machine word.

        Raises `FunctionFaultError` if it faults or has not returned after `limit` instructions, and
        `emu.elf.image.ElfError` for an unknown name.
        """
        self.prepare(*arguments, function=function)
        if not self.advance(limit):
            raise FunctionFaultError(f"the function had not returned after {limit:,} instructions", self.engine.pc)
        return self.engine.read_register(self.isa.calling.results[0])

    def advance(self, instructions: int) -> bool:
        """Execute about so many instructions; return whether the function has returned.

        Raises `FunctionFaultError` if it faults.
        """
        engine = self.engine
        try:
            waits = engine.run(hard=engine.instructions + instructions)
        except GuestCrashError as error:
            raise FunctionFaultError(f"the function faulted: {error}", error.pc) from None
        return waits and engine.pc - len(self.isa.traps.wait) == LANDING

    # -- the interface for the framework

    def wall(self) -> int:
        """Return virtual nanoseconds since 1970: the guest's time starts when it is created."""
        return self.now()

    def thread(self) -> Thread:
        """Return the only thread."""
        return _THREAD

    def machine_code(self) -> GuestCode:
        """Return the functions by which machine code reads the guest itself."""
        from emu.engine.native_parts import engine_code  # noqa: PLC0415  few runs need it
        from emu.guest.native_parts import thread_code  # noqa: PLC0415  few runs need it

        return engine_code(self.engine, self.clock).joined(thread_code(_THREAD))

    def load(self, address: int, size: int) -> bytes:
        """Read memory.  Raises `BadAddressError`."""
        return self.engine.read(address, size)

    user_load = load

    def user_store(self, address: int, data: bytes) -> None:
        """Write memory.  Raises `BadAddressError`."""
        self.engine.memory.write(address, data)

    def kernel_stack(self) -> list[int]:
        """Return the pc and its caller, and no more: functions may have no frame pointers."""
        frame = self.traps.core.trapframe
        if frame is None:
            return [self.engine.pc]
        registers = self.isa.registers
        pc = frame.register(registers.pc)
        if takes_frame_back(self.isa.stub.plan(self.patcher.original(pc, 8), pc), registers.fp):
            slot = frame.register(registers.fp) + self.isa.calling.frame_return
            return [pc, self.engine.load(slot, self.isa.word)]
        return [pc, frame.register(registers.link) if registers.link else frame.stack_word(0)]

    def user_stack(self) -> list[int]:
        """Return nothing: there is no user mode."""
        return []

    def locate(self, address: int) -> Location | None:
        """Name an address by the symbols of the image."""
        found = self._image.symbol_at(address) if self._image else None
        return Location(_MODULE, found[0].name, found[1]) if found else None

    def locate_user(self, address: int, pid: int | None = None) -> Location | None:
        """Name nothing: there is no user mode."""
        _ = address, pid
        return None

    def run(self, deadline: int | None) -> RunState:
        """Return at once: the guest runs in `call`."""
        _ = deadline
        return RunState.FINISHED

    def interrupt(self) -> None:
        """Do nothing: `call` returns by itself."""

    def _on_system_call(self) -> None:
        """Refuse a system call: there is no kernel, and no vector for the CPU.

        Raises `FunctionFaultError`.
        """
        raise FunctionFaultError("the function made a system call: a function guest has no kernel", self.engine.pc)
