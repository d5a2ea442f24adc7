"""The callbacks in machine code, compiled by LLVM once and linked for each engine.

Each function of `ir/common.ll`, and of the `unicorn.ll` of an ISA, does the same as the function of
that name in `emu.engine.python_callbacks`, or in the `unicorn.py` beside it, which is easier to
read; `emu.engine.state` documents the rules. There are two reasons for machine code. Speed: the
block callback runs at every block. Safety: QEMU delivers an exception by a function that may
long-jump (if a kernel stack is not mapped), which is safe across machine code but not across Python
frames.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files
from string import Template
from typing import Final

from emu.engine.handlers import Handlers
from emu.engine.hits.firing_code import ASK, LATE, Asked, FiringCode
from emu.engine.hits.plan_code import Places, PlanCode
from emu.engine.hits.plan_encoding import Windows
from emu.engine.hits.tracepoints import Tracepoints
from emu.engine.hits.watched import Hooked
from emu.engine.hits.watched_code import WatchedCode
from emu.engine.memory.memory import HostMemory, Memory
from emu.engine.qemu import jump_cache, layout, library, temporaries
from emu.engine.qemu.code_addresses import HookPlaces
from emu.engine.qemu.code_hooks import CodeHooks
from emu.engine.qemu.code_hooks_code import CodeHooksCode
from emu.engine.qemu.cpu import Cpu
from emu.engine.qemu.inlined_count import ENTRY_SIZE, MARKER, POSSIBLE
from emu.engine.qemu.tlb import SoftTlb
from emu.engine.state import DELIVER, FILLS, HANDLED, PREPAID, TB_REQUEST_CACHE, ClockWord, Word
from emu.engine.time.counter import Counter
from emu.isa.base import Isa
from emu.native import available
from emu.native.builder import Module
from emu.native.compile import compiled
from emu.native.link import Linked
from emu.native.operations import Value
from emu.support.plain import address_of, function_address
from emu.unicorn_layout.functions import CALLBACKS

# Functions of Unicorn that the callbacks call.
_UNICORN: Final = ("uc_emu_stop", "uc_ctl", "uc_reg_read", "uc_reg_write")
# The beginning of the names of addresses for the linker, because its names are those of the whole process.
_SYMBOL: Final = "trapline."
# The number of sources whose machine code is kept: the ISAs, each with and without a kernel of its own.
_SOURCES: Final = 16
# The functions that write into translated blocks depend on the host.
_WRITE: Final = ("inlined.ll", "jumps.ll") if POSSIBLE else ("not_inlined.ll",)
# A number that no trap has.
_NO_TRAP: Final = 0x7FFF_FFFF
_ON_BREAKPOINT: Final = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64)
_ON_LATE: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64)
_ON_INSIDE: Final = ctypes.CFUNCTYPE(None)
_ON_FIRST_BLOCK: Final = ctypes.CFUNCTYPE(None, ctypes.c_uint64)
_ON_TRAP: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint32)
_ON_LOAD: Final = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)
_ON_FIRED: Final = ctypes.CFUNCTYPE(ctypes.c_uint64)
_PLAN: Final = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)

__all__ = ["Callbacks", "available"]


class Callbacks:
    """Compiled callbacks: the addresses of the functions, None where the ISA has none.

    `delivers`: system calls go to the guest's own vector; else they are traps like others.  Keep
    the object alive as long as the functions are hooked.
    """

    def __init__(
        self,
        cpu: Cpu,
        counter: Counter,
        handlers: Handlers,
        memory: Memory,
        windows: Windows,
        tracepoints: Tracepoints,
        hooked: Hooked,
        code_hooks: CodeHooks,
        tlb: SoftTlb | None,
        *,
        delivers: bool,
    ) -> None:
        model = cpu.model
        self._handlers = {
            "on_trap": _ON_TRAP(handlers.trap),
            "on_breakpoint": _ON_BREAKPOINT(handlers.breakpoint),
            "on_late": _ON_LATE(handlers.late),
            "on_inside": _ON_INSIDE(handlers.inside),
            "on_load": _ON_LOAD(handlers.load),
            "on_fired": _ON_FIRED(handlers.fired),
            "on_left": _ON_FIRED(handlers.left),
            "on_correction": _PLAN(handlers.correct),
            "on_first_block": _ON_FIRST_BLOCK(counter.late.place),
        }
        addresses = {name: function_address(function) for name, function in self._handlers.items()}
        addresses |= {name: library.address(name) for name in _UNICORN}
        addresses |= {name: function_address(cpu.function(name)) for name in CALLBACKS}
        addresses |= {
            "env": cpu.env,
            "do_interrupt": library.address(model.deliver),
            "words": counter.address,
            "table": ctypes.addressof(counter.table),
            "handle": cpu.handle,
            "ram": memory.pointer,
            "ram_end": memory.pointer + memory.size,
            "executed": address_of(memory.executed) if isinstance(memory, HostMemory) else 0,
            "windows": windows.address,
            "tracepoints": tracepoints.header.address,
            "hooked": hooked.address,
            "context": temporaries.context(cpu.handle),
            "code_hooks": code_hooks.block.address,
            # If the guest has page tables, no TLB is filled.
            "on_fill": windows.address if tlb is None else function_address(tlb.callback),
        }
        code = _machine_code(cpu.isa, counter.half, tuple(addresses), delivers=delivers, hosted=tlb is not None)
        self._linked = Linked(code, {_SYMBOL + name: address for name, address in addresses.items()})
        self.block = self._function("block")
        counter.late.overdue = self._function("overdue").value or 0
        counter.late.served_hook = self._function("served_hook").value or 0
        if POSSIBLE:
            counter.late.go_on = self._linked.address("go_on")
            counter.late.asked_block = self._linked.address("asked_block")
        self.trap = self._function("trap")
        self.invalid = self._function("invalid") if model.on_invalid else None
        self.system_call = self._function("system_call") if model.on_system_call and delivers else None
        self.refused = self._function("refused") if model.on_refused else None
        self.fill = self._function("fill") if tlb else None
        self.watched = self._linked.address("watched")
        self.code_hook = self._function("code_hook")
        address = self._linked.address
        tracepoints.fire, tracepoints.reach, tracepoints.argument = map(address, ("fire", "reach", "argument"))
        tracepoints.take = address("take")
        self.emulated = self._function("exit_or_not"), self._function("keep")
        self.plan = _PLAN(self._linked.address("plan"))
        """Carries out an encoded plan; for tests."""

    def _function(self, name: str) -> ctypes.c_void_p:
        return ctypes.c_void_p(self._linked.address(name))


@lru_cache(_SOURCES)
def _machine_code(isa: Isa, half: int, addresses: tuple[str, ...], *, delivers: bool, hosted: bool) -> bytes:
    """Return the functions of this ISA as an object file, the same for every engine of this kind.

    `half`: the number of entries in half of the table of blocks.
    """
    source = _source(isa, _general_names() | _names_of(isa, half, delivers=delivers), addresses, hosted=hosted)
    return compiled("callbacks", source.encode(), lambda: source)


def _source(isa: Isa, names: Mapping[str, int], addresses: Iterable[str], *, hosted: bool) -> str:
    """Return the functions of this ISA, with numbers in place of names, and symbols for addresses."""
    module = Module()
    symbols = {name: module.symbol(_SYMBOL + name) for name in addresses}
    _write_firing(module, isa, symbols, hosted=hosted)
    places = [files("emu.engine").joinpath("ir", name) for name in ("common.ll", "blocks.ll", *_WRITE)]
    places += [files(package).joinpath("unicorn.ll") for package in isa.unicorn.ir]
    text = "\n".join(place.read_text() for place in places)
    numbers = {name: str(_signed(value)) for name, value in names.items()}
    return module.source + Template(text).substitute({**numbers, **symbols})


def _write_firing(module: Module, isa: Isa, symbols: Mapping[str, Value], *, hosted: bool) -> None:
    """Write the functions that serve hits, with the builder (`emu.native.builder`)."""
    places = Places(
        words=symbols["words"],
        env=symbols["env"],
        handle=symbols["handle"],
        ram=symbols["ram"],
        ram_end=symbols["ram_end"],
        executed=symbols["executed"],
        windows=symbols["windows"],
        register_read=symbols["uc_reg_read"],
        register_write=symbols["uc_reg_write"],
    )
    plans = PlanCode(module, isa, places, hosted=hosted)
    asked = Asked(symbols["on_load"], symbols["on_late"], symbols["on_fired"])
    firing = FiringCode(module, isa, places, plans, asked, symbols["tracepoints"])
    hooks = HookPlaces(
        table=symbols["code_hooks"],
        hooked=symbols["hooked"],
        words=symbols["words"],
        env=symbols["env"],
        context=symbols["context"],
        code_byte=symbols["cpu_ldub_code"],
        next_block=symbols["helper_lookup_tb_ptr"],
        correct=symbols["on_correction"],
        leave=symbols["cpu_loop_exit"],
    )
    CodeHooksCode(module, isa, hooks, firing)
    WatchedCode(module, isa, places, plans, firing, symbols["hooked"], symbols["on_left"])


def _general_names() -> dict[str, int]:
    """Return the names that have the same value in every engine."""
    names: dict[str, int] = {name: value for name, value in vars(layout).items() if isinstance(value, int)}
    names |= {word.name: word.value for word in Word}
    names |= {f"CLOCK_{word.name}": word.value for word in ClockWord}
    names |= {**jump_cache.NAMES, "HANDLED": HANDLED, "DELIVER": DELIVER, "ASK": ASK, "LATE": LATE}
    names["PREPAID"] = PREPAID
    return names | {"TB_REQUEST_CACHE": TB_REQUEST_CACHE - (1 << 32)}  # as a signed int


def _names_of(isa: Isa, half: int, *, delivers: bool) -> dict[str, int]:
    """Return the names whose values belong to this ISA and this kind of engine."""
    model = isa.unicorn
    return {
        **model.names,
        "BREAKPOINT_NUMBER": _NO_TRAP if model.breakpoint is None else model.breakpoint,
        "BREAKPOINT_LENGTH": model.breakpoint_length,
        "PC_AHEAD": model.pc_ahead,
        "DIRECT_SYSTEM_CALL": _NO_TRAP if model.system_call is None or not delivers else model.system_call,
        "PC_OFFSET": 8 * isa.registers.slots[isa.registers.pc],
        "PC_AFTER": isa.traps.pc_after,
        "WORD": isa.word,
        "ADDRESS": isa.address_mask,
        "KERNEL_START": isa.kernel_start,
        "TABLE_MASK": half - 1,
        "FILLS_MASK": FILLS - 1,
        "JUMPS_UNIT": isa.instruction_alignment.bit_length() - 1,
        "READ_KIND": library.READ,
        "WRITTEN_SIZE": ENTRY_SIZE,
        "MARKER": MARKER,
        "TABLE_BITS": half.bit_length() - 1,
    }


def _signed(value: int) -> int:
    """Return a word in the form that LLVM's parser accepts."""
    return value - (value >> 63 << 64) if value > 0 else value
