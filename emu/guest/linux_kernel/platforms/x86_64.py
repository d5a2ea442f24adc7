"""The x86-64 machine: a PC without ACPI and APIC.

| port | device |
| --- | --- |
| 0x20, 0x21, 0xa0, 0xa1 | the two 8259A |
| 0x40 to 0x43, 0x61 | 8254; its counter 0 is interrupt 0 |
| 0x64 | keyboard controller: 0xfe resets the machine |
| 0x70, 0x71 | MC146818 |
| 0x3f8 to 0x3ff | UART 16550A, interrupt 4 |
| others | read as all ones |

| physical address | what |
| --- | --- |
| 0x1000 | page tables that map 4 GiB one to one |
| 0x10000, 0x20000 | boot parameters, command line |
| 16 MiB | the kernel, at the address in its ELF file |
| end of RAM | the initramfs |

The kernel is entered at its 64-bit entry point. The time-stamp counter counts nanoseconds.

Source: Linux Documentation/arch/x86/boot.rst (64-bit boot protocol), zero-page.rst.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from emu.engine.engine import Engine
from emu.engine.qemu.hooks import INSTRUCTION, Hooks
from emu.engine.time.clock import NANOSECONDS, VirtualClock
from emu.guest.linux_kernel.abi import CallPath, KernelAbi
from emu.guest.linux_kernel.devices.device import Device
from emu.guest.linux_kernel.devices.i8254 import I8254, PORT_B
from emu.guest.linux_kernel.devices.i8259 import I8259Pair
from emu.guest.linux_kernel.devices.mc146818 import Mc146818
from emu.guest.linux_kernel.devices.ns16550 import Ns16550
from emu.guest.linux_kernel.image import KernelImage
from emu.guest.linux_kernel.kallsyms import Symbols
from emu.guest.linux_kernel.platforms.platform import EPOCH, Board, CallbackCode, Wires
from emu.isa.x86.emulated import emulated
from emu.isa.x86.unicorn import FLAGS, HFLAGS, IN, OUT, RDTSC
from emu.isa.x86_64 import X86_64
from emu.isa.x86_64.unicorn import GENERAL_REGISTERS

_PAGE: Final = 4096
_TABLES, _STACK, _PARAMETERS, _COMMAND_LINE = 0x1000, 0x9000, 0x10000, 0x20000
# Below 1 MiB: Linux does not use that memory.
_SCRATCH: Final = range(0x30000, 0x40000)
_LOW_END, _HIGH_START = 0x9FC00, 0x10_0000
_LONGEST_COMMAND_LINE: Final = 2047
# Fields of struct boot_params (zero-page.rst).
_E820_COUNT, _SETUP, _BOOT_FLAG, _MAGIC, _VERSION, _LOADER, _LOAD_FLAGS, _RAMDISK, _COMMAND, _E820 = (
    0x1E8, 0x1F1, 0x1FE, 0x202, 0x206, 0x210, 0x211, 0x218, 0x228, 0x2D0,
)  # fmt: skip
_UNKNOWN_LOADER: Final = 0xFF
_BOOT_PROTOCOL: Final = 0x020F
_USABLE: Final = 1
# Entries of page tables: present and writable; of 2 MiB.
_TABLE_ENTRY, _LARGE_ENTRY = 3, 0x83
_LARGE: Final = 2 << 20
_CR0, _CR4 = 0x8000_0033, 0x20
_TIMER_INTERRUPT, _UART_INTERRUPT = 0, 4
_UART, _KEYBOARD = 0x3F8, 0x64
_KEYBOARD_RESET: Final = 0xFE
# CPUX86State of the pinned build (qemu/target/i386/cpu.h).
_IF: Final = 0x200
_INHIBITED: Final = 1 << 3
# The number of instructions until the next test whether interrupts are enabled.
_SOON: Final = 400
# Linux maps physical address 0 here (arch/x86/include/asm/page_64_types.h, __PAGE_OFFSET_BASE_L4).
_LINEAR_MAP: Final = 0xFFFF_8880_0000_0000
# Where the kernel is mapped, at the distance of its physical address (__START_KERNEL_map).
_KERNEL_MAP: Final = 0xFFFF_FFFF_8000_0000
# A value that is not a byte of an opcode.
_NOTHING: Final = 0x100
_HALF: Final = 0xFFFF_FFFF
_ON_COUNTER: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


_ABI: Final = KernelAbi(
    pt_regs=(
        "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi",
        "orig_rax", "rip", "cs", "rflags", "rsp", "ss",
    ),
    # Up to 6.14 it is the first member of this structure.
    current_variable=("pcpu_hot", "current_task"),
    calls=CallPath(
        entry=("do_syscall_64",),
        done=("syscall_exit_to_user_mode",),
        number="orig_rax",
        arguments=("rdi", "rsi", "rdx", "r10", "r8", "r9"),
        result="rax",
    ),
)  # fmt: skip


class PcBoard(Board):
    """The PC of an x86-64 kernel."""

    isa = replace(
        X86_64,
        kernel_base=_LINEAR_MAP,
        unicorn=replace(
            X86_64.unicorn,
            # A kernel reads the counter too often to stop the run each time: a hook returns it.
            emulated=emulated(GENERAL_REGISTERS, "rflags", counter=False),
            names={**X86_64.unicorn.names, "X86_RDTSC": _NOTHING},
        ),
    )
    abi = _ABI
    scratch = _SCRATCH
    pad = bytes.fromhex("e8"), bytes.fromhex("0f1f440000")
    modules = 0xFFFF_FFFF_C000_0000
    callback = CallbackCode(
        landing=bytes.fromhex("f30f1efa"),  # endbr64
        nop=bytes.fromhex("90"),
        zero=bytes.fromhex("31c0 c3"),  # xor %eax, %eax; ret
        one=bytes.fromhex("b801000000 c3"),  # mov $1, %eax; ret
        equal=bytes.fromhex("31c0 48397740 0f94c0 c3"),  # xor %eax, %eax; cmp %rsi, 64(%rdi); sete %al; ret
    )
    unprobed = ("entry",)
    debian = "amd64", "linux-image-cloud-amd64"
    console = "ttyS0"
    # rdtscp stops the run, so that the host can answer it; a kernel without it uses rdtsc.
    arguments = (
        "acpi=off nolapic noapic nosmp mitigations=off nopti tsc_early_khz=1000000 tsc=reliable "
        "clearcpuid=rdtscp reboot=t"
    )
    early = "earlyprintk=serial,ttyS0,115200"

    @classmethod
    def start(cls, image: KernelImage, symbols: Symbols) -> int:  # noqa: ARG003  (the image has it)
        """Return the virtual address of an image's first byte."""
        return _KERNEL_MAP + image.base

    def __init__(self, engine: Engine, clock: VirtualClock, wires: Wires) -> None:
        super().__init__(engine, clock, wires)
        self._flags = ctypes.c_uint64.from_address(engine.cpu.env + FLAGS)
        self._hidden = ctypes.c_uint32.from_address(engine.cpu.env + HFLAGS)
        self._pic = I8259Pair(self._interrupt)
        self._pit = I8254(self.now, lambda: self._pic.pulse(_TIMER_INTERRUPT), engine.stop)
        self._uart = Ns16550(wires.send, self._pic.source(_UART_INTERRUPT), gated=True)
        self._cmos = Mc146818(lambda: (EPOCH + self.now()) // NANOSECONDS)
        self.devices = {"pic": self._pic, "pit": self._pit, "uart": self._uart, "cmos": self._cmos}
        self._ports: dict[int, tuple[Device, int]] = {
            0x20: (self._pic, 0),
            0x21: (self._pic, 1),
            0xA0: (self._pic, 2),
            0xA1: (self._pic, 3),
            0x61: (self._pit, PORT_B),
            0x70: (self._cmos, 0),
            0x71: (self._cmos, 1),
        }
        self._ports |= {0x40 + number: (self._pit, number) for number in range(4)}
        self._ports |= {_UART + number: (self._uart, number) for number in range(8)}
        self._hook_instructions()

    def _hook_instructions(self) -> None:
        """Set hooks for in, out and rdtsc."""
        engine = self.engine
        engine.cpu.on_port(IN, self._guarded(self._in))
        engine.cpu.on_port(OUT, self._guarded(self._out))
        slots = engine.isa.registers.slots
        rax, rdx, words = slots["rax"], slots["rdx"], engine.words

        def counter(_uc: int, _data: int) -> int:
            time = self.now()
            words[rax], words[rdx] = time & _HALF, time >> 32
            return 1

        hook = _ON_COUNTER(counter)
        self._kept.append(hook)
        self._kept.append(hooks := Hooks(engine.cpu, 0))
        hooks.add(INSTRUCTION, hook, instruction=RDTSC)

    def _guarded(self, serve: Callable[..., int]) -> Callable[..., int]:
        def hook(_uc: Any, port: int, size: int, *rest: Any) -> int:
            try:
                return serve(port, size, *rest)
            except Exception as error:  # noqa: BLE001  raised again by the machine
                self.wires.failed(error)
                return 0

        return hook

    def _in(self, port: int, size: int, _data: Any) -> int:
        known = self._ports.get(port)
        return (1 << 8 * size) - 1 if known is None else known[0].read(known[1], size)

    def _out(self, port: int, size: int, value: int, _data: Any) -> int:
        known = self._ports.get(port)
        if known is not None:
            known[0].write(known[1], size, value)
        elif port == _KEYBOARD and value == _KEYBOARD_RESET:
            self.wires.reset()
        return 0

    # -- booting

    def load(self, kernel: KernelImage, initramfs: bytes, command_line: str) -> None:
        """Enter the kernel in 64-bit mode, with the boot parameters in rsi."""
        initramfs_at = (self.engine.memory.size - len(initramfs)) & -_PAGE
        self.put(kernel.base, kernel.data)
        self.put(initramfs_at, initramfs)
        self.put(_PARAMETERS, self._parameters(kernel, initramfs_at, len(initramfs)))
        self.put(_COMMAND_LINE, command_line.encode()[:_LONGEST_COMMAND_LINE] + b"\0")
        directories = _TABLES + 2 * _PAGE
        self.put(_TABLES, struct.pack("<Q", _TABLES + _PAGE | _TABLE_ENTRY))
        self.put(_TABLES + _PAGE, struct.pack("<4Q", *(directories + _PAGE * n | _TABLE_ENTRY for n in range(4))))
        self.put(directories, struct.pack("<2048Q", *(_LARGE * n | _LARGE_ENTRY for n in range(2048))))
        for register, value in (
            ("cr3", _TABLES),
            ("cr4", _CR4),
            ("cr0", _CR0),
            ("rsi", _PARAMETERS),
            ("rsp", _STACK),
            ("eflags", 2),
        ):
            self.engine.cpu.write_public(register, value)
        self.engine.pc = kernel.entry

    def _parameters(self, kernel: KernelImage, ramdisk: int, size: int) -> bytes:
        """Return the zero page."""
        page = bytearray(_PAGE)
        page[_SETUP : _SETUP + len(kernel.setup)] = kernel.setup
        if not kernel.setup:  # a vmlinux: it has no setup header of its own
            struct.pack_into("<H", page, _BOOT_FLAG, 0xAA55)
            page[_MAGIC : _MAGIC + 4] = b"HdrS"
            struct.pack_into("<H", page, _VERSION, _BOOT_PROTOCOL)
            page[_LOAD_FLAGS] = 1
        page[_LOADER] = _UNKNOWN_LOADER
        struct.pack_into("<II", page, _RAMDISK, ramdisk, size)
        struct.pack_into("<I", page, _COMMAND, _COMMAND_LINE)
        memory = ((0, _LOW_END), (_HIGH_START, self.engine.memory.size - _HIGH_START))
        page[_E820_COUNT] = len(memory)
        for number, (start, length) in enumerate(memory):
            struct.pack_into("<QQI", page, _E820 + 20 * number, start, length, _USABLE)
        return bytes(page)

    # -- interrupts

    def _interrupt(self, level: bool) -> None:
        """Make the machine test whether it can deliver the pending interrupt."""
        if level:
            self.engine.stop()

    @property
    def _open(self) -> bool:
        """Whether the CPU accepts interrupts."""
        return bool(self._flags.value & _IF) and not self._hidden.value & _INHIBITED

    def deliver(self) -> int | None:
        """Deliver the pending interrupt."""
        if self._pic.pending() is None:
            return None
        if not self._open:
            return _SOON
        cpu = self.engine.cpu
        vector = self._pic.acknowledge()
        cpu.function("do_interrupt_x86_hardirq")(ctypes.c_void_p(cpu.env), ctypes.c_int(vector), ctypes.c_int(1))
        return None if self._pic.pending() is None else _SOON

    def due(self) -> int | None:
        """Return the time of the timer's next interrupt."""
        return self._pit.due()

    def timer(self) -> None:
        """Send the timer's interrupt."""
        self._pit.run()

    def pending(self) -> bool:
        """Return whether an interrupt is pending, and the CPU accepts it."""
        return self._pic.pending() is not None and bool(self._flags.value & _IF)

    def stopped(self) -> bool:
        """Return whether the CPU waits with interrupts off: a kernel without ACPI switches off so."""
        return not self._flags.value & _IF

    def receive(self, data: bytes) -> None:
        """Receive bytes on the UART."""
        self._uart.receive(data)
