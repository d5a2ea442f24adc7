"""The kernel guest for the framework and the providers: memory, threads, stacks, names, time."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from emu.displaced.frame import Frame
from emu.elf.file import ElfError
from emu.elf.image import Image, image_of_content
from emu.elf.source.inlined import SourceFrame
from emu.elf.symbols import Symbol
from emu.engine.engine import Engine
from emu.engine.time.clock import NANOSECONDS, VirtualClock
from emu.guest.base import Location, Thread
from emu.guest.kernel import krtld
from emu.guest.kernel.boot import images
from emu.guest.kernel.introspection import Introspection
from emu.guest.kernel.modules import Modules
from emu.guest.kernel.stacks import KernelStacks
from emu.guest.kernel.traced import TracedStretches
from emu.guest.kernel_memory import KernelMemory
from emu.isa.base import Isa
from emu.native.guest import GuestCode
from emu.probe.patcher import Patcher
from emu.probe.trap import TrapHandler
from emu.probe.trap_frames import LiveFrame, SavedFrame
from emu.support.words import BadAddressError

# Wall time at power-on: a constant, so that a run is the same every day.
EPOCH: Final = 1_700_000_000 * NANOSECONDS


class Called(NamedTuple):
    """The firing of a probe that the kernel calls."""

    runs: int
    """The address of its enablings in machine code (`Framework.native_runs`); 0: Python fires it."""
    frames: int | None = None
    """The value of `KernelView.probe_frames` while it fires."""


class KernelView(KernelMemory):
    """The readable state of one kernel guest, and writes to its memory."""

    cpu = 0
    """The number of the CPU that runs."""
    cpu_count = 1
    """The number of CPUs."""

    def __init__(
        self,
        isa: Isa,
        image: Image,
        engine: Engine,
        clock: VirtualClock,
        traps: TrapHandler,
        patcher: Patcher,
        files: Mapping[str, bytes],
    ) -> None:
        self.isa = isa
        self.image = image
        self.engine = engine
        self.clock = clock
        self.now = clock.now
        """Returns virtual nanoseconds since power on."""
        self.traps = traps
        self.patcher = patcher
        self.probe_calls = krtld.probe_calls(image)
        """The addresses where the kernel has nops instead of calls, for illumos's SDT."""
        self.modules = Modules(engine, image, patcher.original)
        self.introspection = Introspection(engine, image)
        self.live = LiveFrame(engine)
        """The registers as they are."""
        self.traced = TracedStretches(engine, image, clock)
        """The stretches of the kernel in which the clock stands still."""
        self.probe_calls_changed: Callable[[], None] = lambda: None
        """Called when other functions serve the kernel's probes."""
        self.on_probe: Callable[..., object] = lambda *_: None
        """Called with what the kernel passes to `dtrace_probe`: an id and five arguments."""
        self.describe_probe: Callable[[int], Called] = lambda _probe_id: Called(0)
        """Says what fires the probe of an id in machine code."""
        self.frames = ctypes.c_uint64()
        """`probe_frames` and one; 0: there are none."""
        self.files = files
        """The files of its initial file system, by path without leading slash."""
        self._stacks = KernelStacks(engine, traps.core, self.introspection, patcher)

    # -- probes that the kernel fires itself

    @property
    def probe_frames(self) -> int | None:
        """While the kernel calls `dtrace_probe`, the number of its frames that a stack omits.

        None otherwise.
        """
        return self.frames.value - 1 if self.frames.value else None

    @probe_frames.setter
    def probe_frames(self, frames: int | None) -> None:
        self.frames.value = 0 if frames is None else frames + 1

    def serve_probes(self, probe: Callable[..., None], describe: Callable[[int], Called]) -> None:
        """Call `probe(id, arg0 ... arg4)` whenever the kernel calls `dtrace_probe`.

        Alternatively machine code does what `describe(id)` says.
        """
        self.on_probe, self.describe_probe = probe, describe
        self.probe_calls_changed()

    def watch_traced(self) -> None:
        """Prepare for probes that the kernel itself calls.

        The code that fires them must not take the guest's time.
        """
        self.traced.watch()

    def call_argument(self, index: int) -> int:
        """Return argument `index` >= 5 of the current call of `dtrace_probe`, after its id."""
        return self.live.argument(index + 1)

    # -- time, threads, memory

    def wall(self) -> int:
        """Return virtual nanoseconds since 1970."""
        return EPOCH + self.clock.now()

    def pc(self) -> int:
        """Return where the CPU is."""
        return self.engine.pc

    def thread(self) -> Thread:
        """Return the current thread."""
        return self.introspection.thread()

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
        self.engine.code.store(address, data)

    def machine_code(self) -> GuestCode:
        """Return the functions by which machine code reads the guest itself."""
        from emu.guest.kernel.native_parts import kernel_code  # noqa: PLC0415  few runs need it

        chained = not self.describes_frames
        return kernel_code(self.engine, self.clock, self.introspection, self._stacks, EPOCH, user_stacks=chained)

    @cached_property
    def describes_frames(self) -> bool:
        """Whether a program was added that says how its stacks are followed.

        The guest's own programs keep frame pointers.
        """
        own = images.programs(self.isa)
        return any(_describes_frames(data) for path, data in self.files.items() if data != own.get(path))

    # -- stacks

    def kernel_stack(self) -> list[int]:
        """Return the kernel pcs of the interrupted context, innermost first."""
        return self._stacks.pcs(self.probe_frames)

    def user_frame(self) -> Frame | None:
        """Return the current thread's user registers (uregs[]), None for a kernel thread."""
        if not self.isa.is_kernel_address(self.engine.pc):
            return self.live
        saved = self.introspection.user_frame()
        return None if saved is None else SavedFrame(self.engine, saved)

    # -- names

    def linker_set(self, name: str) -> tuple[int, int] | None:
        """Return the address and size of a kernel's linker set, None if it has no such set."""
        section = self.image.section(name)
        return None if section is None else (section.address, len(section.data))

    def symbol_address(self, name: str) -> int | None:
        """Return the address of a symbol of the kernel, None if there is none."""
        try:
            return self.image.symbol(name).value
        except ElfError:
            return None

    def symbol_at(self, address: int) -> tuple[Symbol, int] | None:
        """Return the kernel's symbol that contains an address, and the address's offset in it."""
        return self.image.symbol_at(address)

    def module_file(self, name: str) -> bytes | None:
        """Return the file of a module in the initial file system.

        None if there is no module of that name.
        """
        return next((data for path, data in self.files.items() if path.rpartition("/")[2] == name), None)

    def kernel_source(self, address: int) -> Sequence[SourceFrame]:
        """Return the functions and lines of an instruction; modules have none."""
        return () if self.modules.locate(address) is not None else self.image.source.frames(address)

    def locate(self, address: int) -> Location | None:
        """Name a kernel address."""
        if not self.isa.is_kernel_address(address):
            return None
        loaded = self.modules.locate(address)
        if loaded is not None:
            return Location(*loaded)
        found = self.image.caller_at(address)
        if found is not None:
            symbol, offset = found
            return Location("kernel", symbol.name, offset)
        text = self.image.segments[0]
        inside = text.vaddr <= address < text.vaddr + text.memsz
        return Location("kernel", "", address - text.vaddr) if inside else None


def _describes_frames(data: bytes) -> bool:
    """Return whether a file is a program whose stacks frame pointers may not tell."""
    try:
        return image_of_content("a file of the guest", data).describes_frames
    except ElfError:
        return False
