"""The AArch64 machine: PSCI firmware, GICv2, PL011; the timer is the CPU's.

| physical address | what |
| --- | --- |
| 0 | RAM; 64 KiB of it from 0x10000 on are reserved |
| 0x200000 | the kernel |
| end of RAM | the initramfs, then the device tree |
| 0xc0000000, 0xc0010000 | GIC: distributor, CPU interface |
| 0xd0000000 | PL011, shared interrupt 1 |

The CPU is a Cortex-A72 at EL1; EL2 and EL3 are the firmware's.

Source: Linux Documentation/arch/arm64/booting.rst; Arm ARM DDI 0487.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from emu.engine.engine import Engine
from emu.engine.errors import EngineError
from emu.engine.time.clock import NANOSECONDS, VirtualClock
from emu.guest.linux_kernel.abi import CallPath, KernelAbi
from emu.guest.linux_kernel.devices import gicv2
from emu.guest.linux_kernel.devices.generic_timer import GenericTimer
from emu.guest.linux_kernel.devices.gicv2 import Gicv2
from emu.guest.linux_kernel.devices.pl011 import PERIPHERAL_ID, Pl011
from emu.guest.linux_kernel.devices.psci import Psci
from emu.guest.linux_kernel.image import KernelImage
from emu.guest.linux_kernel.platforms.device_tree import cells, flatten, node
from emu.guest.linux_kernel.platforms.platform import Board, CallbackCode, Wires
from emu.isa.aarch64 import AARCH64
from emu.isa.aarch64.page_tables import TABLES
from emu.isa.aarch64.registers import OFFSETS
from emu.isa.base import Paging
from emu.isa.unicorn_model import EmulatedInstructions

_KERNEL: Final = 2 << 20
# Reserved by the device tree.
_SCRATCH: Final = range(0x10000, 0x20000)
_PAGE: Final = 4096
_TREE: Final = 64 << 10
_DISTRIBUTOR, _INTERFACE = 0xC000_0000, 0xC001_0000
_UART, _UART_SIZE = 0xD000_0000, 0x1000
_UART_CLOCK: Final = 24_000_000
# Numbers of interrupts: the virtual timer is the CPU's own 11, the UART shared interrupt 1.
_TIMER_INTERRUPT, _UART_INTERRUPT = 16 + 11, 32 + 1
_FREQUENCY: Final = 62_500_000
_TICK: Final = NANOSECONDS // _FREQUENCY
# Linux maps physical address 0 here with 48-bit addresses (arch/arm64/include/asm/memory.h, PAGE_OFFSET).
_LINEAR_MAP: Final = 0xFFFF_0000_0000_0000
# Unicorn's numbers of exceptions.
_HVC, _SMC = 11, 13
# System registers as (crn, crm, op0, op1, op2).
_SCR_EL3: Final = (1, 1, 3, 6, 0)
_CNTFRQ: Final = (14, 0, 3, 3, 0)
# Non-secure, hvc is allowed, the next lower level is AArch64.
_SCR: Final = 0x501
# All interrupts masked, EL1 with its own stack pointer.
_PSTATE: Final = 0x3C5
# The table of system registers, and the functions in the description of one, which begins with its name.
_CP_REGS, _READ_FN, _WRITE_FN = (OFFSETS[name] for name in ("CP_REGS", "CP_READ", "CP_WRITE"))
_READ: Final = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p)
_WRITE: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)
# Bits of a page table's entry.
_VALID, _TABLE, _ADDRESS = 1, 2, 0x0000_FFFF_FFFF_F000
# The number of bits by which an address is shifted at each level.
_SHIFTS: Final = (39, 30, 21, 12)


def _translate(read_word: Callable[[int], int], root: int, address: int) -> int | None:
    """Walk four levels: 4 KiB granule, 48-bit addresses (Arm ARM D8); None: not mapped."""
    table = root & _ADDRESS & ~1
    if not table:
        return address  # the MMU is off until the kernel loads its tables
    for shift in _SHIFTS:
        entry = read_word(table + (address >> shift & 0x1FF) * 8)
        if not entry & _VALID:
            return None
        if shift == 12 or (shift < _SHIFTS[0] and not entry & _TABLE):
            offset = (1 << shift) - 1
            return (entry & _ADDRESS & ~offset) | (address & offset)
        table = entry & _ADDRESS
    return None


_NOTHING_EMULATED: Final = EmulatedInstructions(
    found=lambda _cpu, _fetch, _address: False, fetch_unit=4, serve=lambda _cpu, _code: 0
)


_ABI: Final = KernelAbi(
    pt_regs=(*(f"x{n}" for n in range(29)), "fp", "lr", "sp", "pc", "pstate", "orig_x0", "syscallno"),
    current_variable=("__entry_task",),
    calls=CallPath(
        entry=("invoke_syscall",),
        done=("invoke_syscall",),
        number="",
        arguments=("x0", "x1", "x2", "x3", "x4", "x5"),
        result="x0",
        done_at_return=True,
    ),
)


class ArmBoard(Board):
    """The machine of an AArch64 kernel."""

    isa = replace(
        AARCH64,
        kernel_base=_LINEAR_MAP,
        paging=Paging(
            _translate,
            AARCH64.paging.writable_mask,
            AARCH64.paging.writable,
            tables=replace(TABLES, shifts=_SHIFTS),
        ),
        unicorn=replace(
            AARCH64.unicorn,
            # The counter is read from the registers below; no instruction has these encodings.
            emulated=_NOTHING_EMULATED,
            names={**AARCH64.unicorn.names, "MRS_CNTVCT": 1, "MRS_CNTPCT": 2},
        ),
    )
    abi = _ABI
    scratch = _SCRATCH
    magic = b"ARM\x64"
    first_symbol = "_text"
    pad = bytes.fromhex("1f2003d5") * 2, bytes.fromhex("e9031eaa1f2003d5")
    modules = 0xFFFF_8000_7800_0000
    callback = CallbackCode(
        landing=bytes.fromhex("5f2403d5"),  # bti c
        nop=bytes.fromhex("1f2003d5"),
        zero=bytes.fromhex("00008052 c0035fd6"),  # mov w0, #0; ret
        one=bytes.fromhex("20008052 c0035fd6"),  # mov w0, #1; ret
        equal=bytes.fromhex("002040f9 1f0001eb e0179f1a c0035fd6"),  # ldr x0, [x0, #64]; cmp x0, x1; cset w0, eq; ret
    )
    unprobed = ("entry", "irqentry", "hyp", "idmap", "hyp_idmap")
    debian = "arm64", "linux-image-cloud-arm64"
    console = "ttyAMA0"
    arguments = ""
    early = f"earlycon=pl011,{_UART:#x}"

    def __init__(self, engine: Engine, clock: VirtualClock, wires: Wires) -> None:
        super().__init__(engine, clock, wires)
        self._line = False
        self._gic = Gicv2(self._interrupt)
        self._uart = Pl011(wires.send, self._gic.source(_UART_INTERRUPT))
        self._timer = GenericTimer(lambda: self.now() // _TICK, self._gic.source(_TIMER_INTERRUPT))
        self.devices = {"gic": self._gic, "uart": self._uart, "timer": self._timer}
        self._psci = Psci(wires.power_off, wires.reset)
        slots = engine.isa.registers.slots
        self._x0, self._x1 = slots["x0"], slots["x1"]
        self.map(self._gic, _DISTRIBUTOR, gicv2.DISTRIBUTOR_SIZE)
        self.map(self._gic.interface, _INTERFACE, gicv2.INTERFACE_SIZE)
        self.map(self._uart, _UART, _UART_SIZE)
        self._take_over_timer()

    # -- the timer's registers

    def _take_over_timer(self) -> None:
        """Replace the CPU's counter and virtual timer, because QEMU's count the host's time."""
        timer = self._timer
        self._register(b"CNTVCT_EL0", 0, 2, lambda: self.now() // _TICK)
        self._register(b"CNTPCT_EL0", 0, 1, lambda: self.now() // _TICK)
        self._register(b"CNTV_CTL_EL0", 3, 1, lambda: timer.control, self._setter("control"))
        self._register(b"CNTV_CVAL_EL0", 3, 2, lambda: timer.compare, self._setter("compare"))
        self._register(b"CNTV_TVAL_EL0", 3, 0, lambda: timer.remaining, self._setter("remaining"))

    def _setter(self, name: str) -> Callable[[int], None]:
        def write(value: int) -> None:
            setattr(self._timer, name, value)
            self.engine.stop()  # the machine's deadline has changed

        return write

    def _register(
        self,
        name: bytes,
        crm: int,
        op2: int,
        read: Callable[[], int],
        write: Callable[[int], None] | None = None,
    ) -> None:
        """Replace the functions that read and write a system register (CRn 14, op1 3)."""
        cpu = self.engine.cpu
        key = 1 << 28 | 0x13 << 16 | 3 << 14 | 3 << 11 | 14 << 7 | crm << 3 | op2
        find = cpu.function("get_arm_cp_reginfo")
        find.restype, find.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_uint32]
        table = ctypes.c_void_p.from_address(cpu.address + _CP_REGS).value
        info = find(table, key)
        if not info or ctypes.string_at(ctypes.c_void_p.from_address(info).value or 0) != name:
            raise EngineError(f"this build of unicorn keeps {name.decode()} at another place")
        reader = _READ(lambda _env, _info: read())
        self._kept.append(reader)
        ctypes.c_void_p.from_address(info + _READ_FN).value = ctypes.cast(reader, ctypes.c_void_p).value
        if write is not None:
            writer = _WRITE(lambda _env, _info, value: write(value))
            self._kept.append(writer)
            ctypes.c_void_p.from_address(info + _WRITE_FN).value = ctypes.cast(writer, ctypes.c_void_p).value

    # -- booting

    def load(self, kernel: KernelImage, initramfs: bytes, command_line: str) -> None:
        """Enter the kernel with the device tree in x0."""
        tree_at = self.engine.memory.size - (2 << 20)
        initramfs_at = (tree_at - len(initramfs)) & -_PAGE
        self.put(_KERNEL, kernel.data)
        self.put(initramfs_at, initramfs)
        self.put(tree_at, self._tree(command_line, initramfs_at, initramfs_at + len(initramfs)))
        cpu = self.engine.cpu
        cpu.write_public("cp_reg", (*_SCR_EL3, _SCR))
        cpu.write_public("pstate", _PSTATE)
        cpu.write_public("cp_reg", (*_CNTFRQ, _FREQUENCY))
        cpu.write_register("x0", tree_at)
        self.engine.pc = _KERNEL

    def _tree(self, command_line: str, start: int, end: int) -> bytes:
        chosen = node(
            "chosen",
            {
                "bootargs": command_line,
                "stdout-path": f"/pl011@{_UART:x}",
                "linux,initrd-start": cells(start),
                "linux,initrd-end": cells(end),
                "rng-seed": bytes(range(64)),
            },
        )
        memory = node("memory@0", {"device_type": "memory", "reg": cells(0, self.engine.memory.size)})
        cpu = node("cpu@0", {"device_type": "cpu", "reg": 0, "compatible": "arm,cortex-a72", "enable-method": "psci"})
        cpus = node("cpus", {"#address-cells": 1, "#size-cells": 0}, cpu)
        psci = node("psci", {"compatible": ["arm,psci-1.0", "arm,psci-0.2"], "method": "hvc"})
        # secure, non-secure, virtual and hypervisor's: the CPU's own interrupts 13, 14, 11 and 10, active low
        timers = [1, 13, 0xF08, 1, 14, 0xF08, 1, 11, 0xF08, 1, 10, 0xF08]
        timer = node("timer", {"compatible": "arm,armv8-timer", "interrupts": timers, "always-on": True})
        interrupts = node(
            f"intc@{_DISTRIBUTOR:x}",
            {
                "compatible": "arm,cortex-a15-gic",
                "#interrupt-cells": 3,
                "#address-cells": 2,
                "#size-cells": 2,
                "interrupt-controller": True,
                "reg": cells(_DISTRIBUTOR, gicv2.DISTRIBUTOR_SIZE, _INTERFACE, gicv2.INTERFACE_SIZE),
                "phandle": 1,
            },
        )
        clock = node(
            "apb-pclk",
            {
                "compatible": "fixed-clock",
                "#clock-cells": 0,
                "clock-frequency": _UART_CLOCK,
                "clock-output-names": "clk24mhz",
                "phandle": 2,
            },
        )
        serial = node(
            f"pl011@{_UART:x}",
            {
                "compatible": ["arm,pl011", "arm,primecell"],
                "reg": cells(_UART, _UART_SIZE),
                "interrupts": [0, _UART_INTERRUPT - 32, 4],
                "clocks": [2, 2],
                "clock-names": ["uartclk", "apb_pclk"],
                "arm,primecell-periphid": PERIPHERAL_ID,
            },
        )
        root: dict[str, Any] = {
            "#address-cells": 2,
            "#size-cells": 2,
            "compatible": "linux,dummy-virt",
            "model": "trapline,aarch64",
            "interrupt-parent": 1,
        }
        return flatten(
            node("", root, chosen, memory, cpus, psci, timer, interrupts, clock, serial),
            [(_SCRATCH.start, len(_SCRATCH))],
        )

    # -- interrupts

    def _interrupt(self, level: bool) -> None:
        """Raise or lower the CPU's interrupt line."""
        self.request(level=level)
        if level and not self._line:
            self.engine.stop()  # QEMU tests for interrupts where it leaves a chain of blocks
        self._line = level

    def due(self) -> int | None:
        """Return the time of the timer's interrupt."""
        ticks = self._timer.due()
        return None if ticks is None else ticks * _TICK

    def timer(self) -> None:
        """Make the timer expire."""
        self._timer.update()

    def pending(self) -> bool:
        """Return whether an interrupt is pending."""
        return self._line

    def receive(self, data: bytes) -> None:
        """Receive bytes on the UART."""
        self._uart.receive(data)

    def trap(self, number: int) -> bool:
        """Serve hvc and smc: calls of PSCI."""
        if number not in {_HVC, _SMC}:
            return False
        words = self.engine.words
        words[self._x0] = self._psci.call(words[self._x0], words[self._x1])
        return True

    def set_own_state(self, state: dict[str, Any]) -> None:  # noqa: ARG002  (it has none)
        """Set the interrupt line again."""
        self._line = False
        self._gic.update()
