"""The contract of a platform: the machine of an ISA.

To add an ISA write `platforms/<isa>.py` with a `Board` and list it in `platforms/boards.py`.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

from emu.engine.engine import Engine
from emu.engine.qemu.layout import CPU_INTERRUPTS
from emu.engine.time.clock import VirtualClock
from emu.guest.linux_kernel.abi import KernelAbi
from emu.guest.linux_kernel.devices.device import Device
from emu.guest.linux_kernel.image import KernelImage
from emu.guest.linux_kernel.kallsyms import Symbols
from emu.isa.base import Isa
from emu.support.immutable import immutable

# The bit of an interrupt in the word that QEMU tests between blocks.
_HARD = 2
# Wall time at power-on, in nanoseconds since 1970: a constant, so that a run is the same every day.
EPOCH = 1_700_000_000 * 1_000_000_000


@immutable
class Wires:
    """The effects of a board on the machine around it."""

    send: Callable[[bytes], object]
    """Prints on the console."""
    power_off: Callable[[], object]
    """The kernel has switched the machine off."""
    reset: Callable[[], object]
    """The kernel requests a reset of the machine, as it does after a panic."""
    failed: Callable[[BaseException], object]
    """Takes the exception of a device: none may pass through the emulator."""


class CallbackCode(NamedTuple):
    """The code of functions that the kernel calls."""

    landing: bytes
    """A landing pad for calls through pointers."""
    nop: bytes
    """An instruction as long as a breakpoint."""
    zero: bytes
    """`return 0`"""
    one: bytes
    """`return 1`"""
    equal: bytes
    """`return ((u64 *)argument1)[8] == argument2`"""


class Board(ABC):
    """The CPU of one machine and everything around it."""

    isa: ClassVar[Isa]
    """The ISA as the engine needs it under a Linux kernel."""
    abi: ClassVar[KernelAbi]
    """The kernel's ABI, for reading its data."""
    scratch: ClassVar[range]
    """Physical memory that the kernel maps but does not use."""
    magic: ClassVar[bytes] = b""
    """The bytes of a flat image at offset 56; empty: kernels are bzImages and ELF files."""
    first_symbol: ClassVar[str] = ""
    """The symbol of a flat image's first byte."""
    pad: ClassVar[tuple[bytes, bytes]]
    """The first bytes of ftrace's pad in the file, and the bytes that replace them at boot."""
    modules: ClassVar[int]
    """An address where the kernel puts modules."""
    callback: ClassVar[CallbackCode]
    """The parts of functions that the kernel calls."""
    unprobed: ClassVar[tuple[str, ...]]
    """Sections of the ISA where the kernel permits no kprobe: `NAME` of `__NAME_text_start`."""
    debian: ClassVar[tuple[str, str]]
    """Debian's name of the ISA, and the package that depends on its newest kernel."""
    console: ClassVar[str]
    """The kernel's name of the UART."""
    arguments: ClassVar[str]
    """Additional words of the kernel's command line, for the features of this machine."""
    early: ClassVar[str]
    """The words that make the kernel print before it has a driver for its console."""
    serves_calls: ClassVar[bool] = False
    """Whether system calls are passed to `call`, because the firmware is called by the same
    instruction."""

    @classmethod
    def start(cls, image: KernelImage, symbols: Symbols) -> int:  # noqa: ARG003  (some boards need it)
        """Return the virtual address of an image's first byte.  Raises KeyError."""
        return symbols.address(cls.first_symbol)

    def __init__(self, engine: Engine, clock: VirtualClock, wires: Wires) -> None:
        self.engine = engine
        self.clock = clock
        self.wires = wires
        self.devices: Mapping[str, Device] = {}
        """The devices by name, as snapshots have them."""
        self._request = ctypes.c_uint32.from_address(engine.cpu.address + CPU_INTERRUPTS)
        self._latest = 0
        self._kept: list[Any] = []

    # -- defined by each platform

    @abstractmethod
    def load(self, kernel: KernelImage, initramfs: bytes, command_line: str) -> None:
        """Put a kernel into memory, and set the CPU's registers as the boot protocol requires."""

    @abstractmethod
    def receive(self, data: bytes) -> None:
        """Receive bytes on the console."""

    @abstractmethod
    def due(self) -> int | None:
        """Return the time of the next timer interrupt in nanoseconds; None: none is set."""

    @abstractmethod
    def timer(self) -> None:
        """Do the current actions of the timers."""

    @abstractmethod
    def pending(self) -> bool:
        """Return whether an interrupt is pending for the CPU, masked or not."""

    def deliver(self) -> int | None:
        """Deliver the pending interrupt, between two runs.

        None: it is delivered, or QEMU will deliver it; a number: it is masked, call again after
        that many instructions.
        """
        return None

    def stopped(self) -> bool:
        """Return whether a CPU that waits can never be woken."""
        return False

    def call(self) -> None:
        """Serve a system call, or a call of the firmware: only with `serves_calls`."""
        raise NotImplementedError

    def trap(self, number: int) -> bool:  # noqa: ARG002  (most boards have none)
        """Handle an exception for the firmware; False: it is for the kernel."""
        return False

    def own_state(self) -> dict[str, Any]:
        """Return the state that is not a device's."""
        return {}

    def set_own_state(self, state: dict[str, Any]) -> None:  # noqa: B027  (many boards have none)
        """Restore that state; the registers are restored already."""

    # -- common to all

    def now(self) -> int:
        """Return the guest's time in nanoseconds, which never decreases, even inside a block."""
        self._latest = max(self._latest, self.clock.at_block())
        return self._latest

    def request(self, *, level: bool) -> None:
        """Make QEMU test for an interrupt before the next block, or stop that."""
        self._request.value = self._request.value | _HARD if level else self._request.value & ~_HARD

    def map(self, device: Device, address: int, size: int) -> None:
        """Map a device into physical memory."""
        failed = self.wires.failed

        def read(_uc: Any, offset: int, width: int, _data: Any) -> int:
            try:
                return device.read(offset, width)
            except Exception as error:  # noqa: BLE001  raised again by the machine
                failed(error)
                return 0

        def write(_uc: Any, offset: int, width: int, value: int, _data: Any) -> None:
            try:
                device.write(offset, width, value)
            except Exception as error:  # noqa: BLE001  raised again by the machine
                failed(error)

        self.engine.cpu.map_device(address, size, read, write)

    def put(self, physical: int, data: bytes) -> None:
        """Write to physical memory."""
        self.engine.memory.ram[physical : physical + len(data)] = data

    def state(self) -> dict[str, Any]:
        """Return the state of all devices."""
        devices = {name: device.state() for name, device in self.devices.items()}
        return {"devices": devices, "own": self.own_state(), "latest": self._latest}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state, after the registers and the memory."""
        for name, device in self.devices.items():
            device.set_state(state["devices"][name])
        self._latest = state["latest"]
        self.set_own_state(state["own"])
