"""The RISC-V machine: SBI firmware, PLIC, UART; the timer is the CPU's.

| physical address | what |
| --- | --- |
| 0 | RAM; its first 2 MiB are the firmware's, as on boards with OpenSBI |
| 0x200000 | the kernel |
| end of RAM | the initramfs, then the device tree |
| 0xc0000000 | PLIC |
| 0xd0000000 | UART, source 10 |

Source: Linux Documentation/arch/riscv/boot.rst; RISC-V privileged specification.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from emu.engine.engine import Engine
from emu.engine.time.clock import NANOSECONDS, VirtualClock
from emu.guest.linux_kernel.abi import CallPath, KernelAbi
from emu.guest.linux_kernel.devices import plic
from emu.guest.linux_kernel.devices.ns16550 import Ns16550
from emu.guest.linux_kernel.devices.plic import Plic
from emu.guest.linux_kernel.devices.sbi import SHUTDOWN, Sbi
from emu.guest.linux_kernel.image import KernelImage
from emu.guest.linux_kernel.platforms.device_tree import cells, flatten, node
from emu.guest.linux_kernel.platforms.platform import Board, CallbackCode, Wires
from emu.isa.riscv64 import RISCV64
from emu.isa.riscv64.emulated import EMULATED, TIME
from emu.isa.riscv64.registers import OFFSETS
from emu.isa.unicorn_model import ModelledCpu

_FIRMWARE: Final = 2 << 20
# Size of the firmware's memory.
_SCRATCH: Final = range(0x10000, 0x20000)
_KERNEL: Final = 2 << 20
_PAGE: Final = 4096
_TREE: Final = 64 << 10
_PLIC: Final = 0xC000_0000
_UART, _UART_SIZE, _UART_SOURCE = 0xD000_0000, 0x1000, 10
# The time base: 10 MHz, as in QEMU's machines.
_FREQUENCY: Final = 10_000_000
_TICK: Final = NANOSECONDS // _FREQUENCY
_NEVER: Final = (1 << 64) - 1
# Where the interrupts are, those that are pending and those that are enabled.
_MIP, _MIE = OFFSETS["MIP"], OFFSETS["MIE"]
# Bits of mip: supervisor software, timer and external interrupts.
_SSIP, _STIP, _SEIP = 1 << 1, 1 << 5, 1 << 9
_SUPERVISOR: Final = 1
# OpenSBI's delegation: all exceptions except calls of the supervisor, and the supervisor's interrupts.
_MEDELEG, _MIDELEG, _MCOUNTEREN = 0xB1FF, 0x222, 7
_ECALL_LENGTH: Final = 4
_READ_TIME: Final = ctypes.CFUNCTYPE(ctypes.c_uint64)
# A register number that no instruction can encode.
_NOWHERE: Final = 1 << 12
# Linux maps physical address 0 here with sv39 (6.12: arch/riscv/include/asm/page.h, PAGE_OFFSET_L3).
_LINEAR_MAP: Final = 0xFFFF_FFD6_0000_0000


def _found(cpu: ModelledCpu, fetch: Callable[[int], int], address: int) -> bool:
    """Leave `rdtime` to the CPU: a kernel reads the time too often to stop for it."""
    return EMULATED.found(cpu, fetch, address) and fetch(address + 2) >> 4 != TIME


_ABI: Final = KernelAbi(
    pt_regs=(
        "pc", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7",
        "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
        "status", "badaddr", "cause", "orig_a0",
    ),
    current="tp",
    current_in_user="sscratch",
    calls=CallPath(
        entry=("do_trap_ecall_u",),
        done=("syscall_exit_to_user_mode",),
        number="a7",
        arguments=("a0", "a1", "a2", "a3", "a4", "a5"),
        result="a0",
    ),
)  # fmt: skip


class RiscvBoard(Board):
    """The machine of a RISC-V kernel."""

    isa = replace(
        RISCV64,
        kernel_base=_LINEAR_MAP,
        unicorn=replace(
            RISCV64.unicorn,
            emulated=replace(EMULATED, found=_found),
            names={**RISCV64.unicorn.names, "CSR_TIME": _NOWHERE},
        ),
    )
    abi = _ABI
    scratch = _SCRATCH
    magic = b"RSC\x05"
    first_symbol = "_start"
    pad = bytes.fromhex("0100") * 4, bytes.fromhex("13000000") * 2
    modules = 0xFFFF_FFFF_0100_0000
    callback = CallbackCode(
        landing=b"",
        nop=bytes.fromhex("13000000"),
        zero=bytes.fromhex("0145 8280"),  # li a0, 0; ret
        one=bytes.fromhex("0545 8280"),  # li a0, 1; ret
        equal=bytes.fromhex("2861 2d8d 13351500 8280"),  # ld a0, 64(a0); xor a0, a0, a1; seqz a0, a0; ret
    )
    unprobed = ("irqentry",)
    debian = "riscv64", "linux-image-riscv64"
    console = "ttyS0"
    # The page walk of `emu.isa.riscv64.page_tables` is for sv39.
    arguments = "no4lvl"
    early = "earlycon=sbi"
    serves_calls = True

    def __init__(self, engine: Engine, clock: VirtualClock, wires: Wires) -> None:
        super().__init__(engine, clock, wires)
        self._mip = ctypes.c_uint64.from_address(engine.cpu.env + _MIP)
        self._mie = ctypes.c_uint64.from_address(engine.cpu.env + _MIE)
        self._timer = _NEVER
        """The timer's next interrupt, in ticks."""
        self._plic = Plic(lambda level: self._set(_SEIP, level=level))
        self._uart = Ns16550(wires.send, self._plic.source(_UART_SOURCE))
        self.devices = {"plic": self._plic, "uart": self._uart}
        self._sbi = Sbi(
            send=wires.send,
            read_memory=lambda address, size: bytes(engine.memory.ram[address : address + size]),
            set_timer=self._set_timer,
            interrupt=lambda: self._set(_SSIP, level=True),
            reset=lambda kind: (wires.power_off if kind == SHUTDOWN else wires.reset)(),
        )
        self._slots = engine.isa.registers.slots
        self.map(self._plic, _PLIC, plic.SIZE)
        self.map(self._uart, _UART, _UART_SIZE)
        self._give_time()

    def _give_time(self) -> None:
        """Make the CPU read the guest's time."""
        read = _READ_TIME(lambda: self.now() // _TICK)
        self._kept = [read]
        self.engine.cpu.function("riscv_cpu_set_rdtime_fn")(
            ctypes.c_void_p(self.engine.cpu.env), ctypes.cast(read, ctypes.c_void_p)
        )

    def load(self, kernel: KernelImage, initramfs: bytes, command_line: str) -> None:
        """Enter the kernel with the hart's number in a0 and the device tree in a1."""
        tree_at = self.engine.memory.size - _TREE
        initramfs_at = (tree_at - len(initramfs)) & -_PAGE
        self.put(_KERNEL, kernel.data)
        self.put(initramfs_at, initramfs)
        self.put(tree_at, self._tree(command_line, initramfs_at, initramfs_at + len(initramfs)))
        cpu = self.engine.cpu
        for register, value in (
            ("medeleg", _MEDELEG),
            ("mideleg", _MIDELEG),
            ("mcounteren", _MCOUNTEREN),
            ("priv", _SUPERVISOR),
            ("a0", 0),
            ("a1", tree_at),
        ):
            cpu.write_public(register, value)
        self.engine.pc = _KERNEL

    def _tree(self, command_line: str, start: int, end: int) -> bytes:
        chosen = node(
            "chosen",
            {
                "bootargs": command_line,
                "stdout-path": f"/soc/serial@{_UART:x}",
                "linux,initrd-start": cells(start),
                "linux,initrd-end": cells(end),
                "rng-seed": bytes(range(64)),
            },
        )
        memory = node("memory@0", {"device_type": "memory", "reg": cells(0, self.engine.memory.size)})
        controller = node(
            "interrupt-controller",
            {"#interrupt-cells": 1, "interrupt-controller": True, "compatible": "riscv,cpu-intc", "phandle": 1},
        )
        hart = node(
            "cpu@0",
            {
                "device_type": "cpu",
                "reg": 0,
                "status": "okay",
                "compatible": "riscv",
                "riscv,isa": "rv64imafdc",
                "mmu-type": "riscv,sv39",
            },
            controller,
        )
        cpus = node("cpus", {"#address-cells": 1, "#size-cells": 0, "timebase-frequency": _FREQUENCY}, hart)
        interrupts = node(
            f"plic@{_PLIC:x}",
            {
                "compatible": "sifive,plic-1.0.0",
                "reg": cells(_PLIC, plic.SIZE),
                "#interrupt-cells": 1,
                "#address-cells": 0,
                "interrupt-controller": True,
                # the hart's external interrupt of supervisor mode
                "interrupts-extended": [1, 9],
                "riscv,ndev": plic.SOURCES,
                "phandle": 2,
            },
        )
        serial = node(
            f"serial@{_UART:x}",
            {
                "compatible": "ns16550a",
                "reg": cells(_UART, 0x100),
                "interrupts": _UART_SOURCE,
                "interrupt-parent": 2,
                "clock-frequency": 3_686_400,
                "current-speed": 115_200,
            },
        )
        soc = node(
            "soc",
            {"#address-cells": 2, "#size-cells": 2, "compatible": "simple-bus", "ranges": True},
            interrupts,
            serial,
        )
        root: dict[str, Any] = {
            "#address-cells": 2,
            "#size-cells": 2,
            "compatible": "riscv-virtio",
            "model": "trapline,riscv64",
        }
        return flatten(node("", root, chosen, memory, cpus, soc), reserved=[(0, _FIRMWARE)])

    # -- interrupts

    def _set(self, bits: int, *, level: bool) -> None:
        """Raise or lower lines of the hart, as QEMU's cpu_interrupt does."""
        old = self._mip.value
        self._mip.value = new = old | bits if level else old & ~bits
        self.request(level=new != 0)
        if new & ~old:
            self.engine.stop()  # QEMU tests for interrupts where it leaves a chain of blocks

    def _set_timer(self, ticks: int) -> None:
        self._timer = ticks
        self._set(_STIP, level=False)
        self.engine.stop()  # the machine's deadline has changed

    def due(self) -> int | None:
        """Return the time at which the timer expires."""
        return None if self._timer == _NEVER else self._timer * _TICK

    def timer(self) -> None:
        """Make the timer expire."""
        self._timer = _NEVER
        self._set(_STIP, level=True)

    def pending(self) -> bool:
        """Return whether an enabled interrupt is pending."""
        return bool(self._mip.value & self._mie.value)

    def receive(self, data: bytes) -> None:
        """Receive bytes on the UART."""
        self._uart.receive(data)

    # -- calls

    def call(self) -> None:
        """Serve `ecall`: a call of SBI by the kernel, or a system call by a program."""
        engine = self.engine
        if engine.cpu.read_public("priv") != _SUPERVISOR:
            engine.pc -= _ECALL_LENGTH
            engine.cpu.deliver()
            return
        words, a0 = engine.words, self._slots["a0"]
        arguments = tuple(words[a0 : a0 + 6])
        words[a0], words[a0 + 1] = self._sbi.call(words[self._slots["a7"]], words[self._slots["a6"]], arguments)

    # -- snapshots

    def own_state(self) -> dict[str, Any]:
        """Return the timer."""
        return {"timer": self._timer}

    def set_own_state(self, state: dict[str, Any]) -> None:
        """Set the timer, and the state for which QEMU has no registers."""
        self._timer = state["timer"]
        self._give_time()
        self.request(level=self._mip.value != 0)
