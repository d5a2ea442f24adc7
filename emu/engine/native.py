"""The callbacks in machine code, compiled by LLVM once and linked for each engine.

Each function of `ir/common.ll`, and of the `unicorn.ll` of an ISA, is the twin of the one of the
same name in `emu.engine.interpreted`, and in `unicorn.py` beside it, which is easier to read;
`emu.engine.state` tells the rules.  There are two reasons for machine code.  Speed: the block
callback runs at every block.  Safety: QEMU delivers an exception by a function that may long-jump
(a kernel stack that is not mapped), which is clean across machine code but not across Python
frames.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files
from string import Template
from typing import Any, Final

import unicorn
from unicorn.unicorn_py3.unicorn import uclib

from emu.disk_cache import cached
from emu.engine import layout
from emu.engine.counting import Counter
from emu.engine.cpu import Cpu
from emu.engine.handlers import Handlers
from emu.engine.plans import Kind, Windows
from emu.engine.state import DELIVER, HANDLED, TB_REQUEST_CACHE, Word
from emu.engine.tlb import FILLS, SoftTlb

# Functions of Unicorn that the callbacks call.
_UNICORN: Final = ("uc_emu_stop", "uc_ctl", "uc_reg_read", "uc_reg_write")
# Functions of QEMU that read code as the translator does; each CPU has its own.
_CODE: Final = ("cpu_ldub_code", "cpu_lduw_code", "cpu_ldl_code", "tlb_flush")
# How the names of addresses begin for the linker, whose names are those of the whole process.
_SYMBOL: Final = "trapline."
# Sources whose machine code is kept: ISAs, each with and without a kernel of its own.
_SOURCES: Final = 16
# A number that no trap has.
_NO_TRAP: Final = 0x7FFF_FFFF
_ON_BREAKPOINT: Final = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64)
_ON_LATE: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64)
_ON_INSIDE: Final = ctypes.CFUNCTYPE(None)
_ON_TRAP: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint32)
_PLAN: Final = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_uint64)


def available() -> bool:
    """Return whether llvmlite is installed."""
    return importlib.util.find_spec("llvmlite") is not None


class Callbacks:
    """Compiled callbacks: the addresses of the functions, None where the ISA has none.

    `delivers`: system calls go to the guest's own vector; else they are traps like others.  Keep
    the object alive as long as the functions are hooked.
    """

    def __init__(
        self, cpu: Cpu, counter: Counter, handlers: Handlers, windows: Windows, tlb: SoftTlb | None, *, delivers: bool
    ) -> None:
        model = cpu.model
        self._handlers = {
            "on_trap": _ON_TRAP(handlers.trap),
            "on_breakpoint": _ON_BREAKPOINT(handlers.breakpoint),
            "on_late": _ON_LATE(handlers.late),
            "on_inside": _ON_INSIDE(handlers.inside),
        }
        addresses = {name: _address(function) for name, function in self._handlers.items()}
        addresses |= {name: _address(getattr(uclib, name)) for name in _UNICORN}
        addresses |= {name: _address(cpu.function(name)) for name in _CODE}
        addresses |= {
            "env": cpu.env,
            "do_interrupt": _address(getattr(uclib, model.deliver)),
            "words": ctypes.addressof(counter.state_array),
            "table": ctypes.addressof(counter.table),
            "windows": windows.address,
            # Where the guest has page tables, nothing is filled.
            "fills": windows.address if tlb is None else tlb.table,
            "on_fill": windows.address if tlb is None else _address(tlb.callback),
        }
        source = _source(cpu, _general_names() | _names_of(cpu, counter, delivers=delivers), addresses)
        self._engine = _linked(_machine_code(source), addresses)
        self.block = self._function("block")
        self.trap = self._function("trap")
        self.invalid = self._function("invalid") if model.on_invalid else None
        self.system_call = self._function("system_call") if model.on_system_call and delivers else None
        self.refused = self._function("refused") if model.on_refused else None
        self.fill = self._function("fill") if tlb else None
        self.special = self._function("special"), self._function("keep")
        self.plan = _PLAN(self._function("plan").value or 0)
        """Carries out an encoded plan; for tests."""

    def _function(self, name: str) -> ctypes.c_void_p:
        return ctypes.c_void_p(self._engine.get_function_address(name))


def _target_machine() -> Any:
    """Return LLVM's description of this host's CPU."""
    import llvmlite.binding as llvm  # noqa: PLC0415  optional, and 50 ms

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # Engines are anywhere in the address space: symbols are 64-bit addresses in the code.
    return llvm.Target.from_default_triple().create_target_machine(opt=2, codemodel="large")


def _linked(code: bytes, addresses: Mapping[str, int]) -> Any:
    """Link machine code with the addresses of this engine; return what holds it."""
    import llvmlite.binding as llvm  # noqa: PLC0415

    for name, address in addresses.items():
        llvm.add_symbol(_SYMBOL + name, address)
    # The linker takes over a target machine and a module, and frees both: each engine needs its own.
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()  # now, while the symbols are this engine's
    return engine


@lru_cache(_SOURCES)
def _machine_code(source: str) -> bytes:
    """Return an object file, from the disk if the same source was compiled there before."""
    import llvmlite  # noqa: PLC0415
    import llvmlite.binding as llvm  # noqa: PLC0415

    machine = _target_machine()

    def compiled() -> bytes:
        module = llvm.parse_assembly(source)
        module.verify()
        passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
        passes.getModulePassManager().run(module, passes)
        code: bytes = machine.emit_object(module)
        return code

    return cached("callbacks", f"{llvmlite.__version__} {machine.triple} {source}".encode(), compiled)


def _source(cpu: Cpu, names: Mapping[str, int], addresses: Iterable[str]) -> str:
    """Return the functions of this ISA, with numbers for names, symbols for addresses.

    So the source, and the machine code, are the same for every engine of an ISA.
    """
    places = [files("emu.engine").joinpath("ir", "common.ll")]
    places += [files(package).joinpath("unicorn.ll") for package in cpu.model.ir]
    text = "\n".join(place.read_text() for place in places)
    numbers = {name: str(_signed(value)) for name, value in names.items()}
    symbols = {name: f'ptrtoint (ptr @"{_SYMBOL}{name}" to i64)' for name in addresses}
    declared = "".join(f'@"{_SYMBOL}{name}" = external global i8\n' for name in addresses)
    return declared + Template(text).substitute(numbers | symbols)


def _general_names() -> dict[str, int]:
    """Return the names that mean the same for every engine."""
    names: dict[str, int] = {name: value for name, value in vars(layout).items() if isinstance(value, int)}
    names |= {word.name: word.value for word in Word}
    names |= {kind.name: kind.value for kind in Kind} | {"HANDLED": HANDLED, "DELIVER": DELIVER}
    return names | {"TB_REQUEST_CACHE": TB_REQUEST_CACHE - (1 << 32)}  # as a signed int


def _names_of(cpu: Cpu, counter: Counter, *, delivers: bool) -> dict[str, int]:
    """Return the names that mean something of this CPU, and of an engine like this one."""
    isa, model = cpu.isa, cpu.model
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
        "TABLE_MASK": counter.half - 1,
        "FILLS_MASK": FILLS - 1,
        "READ_KIND": unicorn.UC_MEM_READ,
        "TABLE_BITS": counter.half.bit_length() - 1,
    }


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _signed(value: int) -> int:
    """Return a word as LLVM's parser wants it."""
    return value - (value >> 63 << 64) if value > 0 else value
