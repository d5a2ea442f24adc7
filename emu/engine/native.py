"""The callbacks in machine code, compiled by LLVM when the engine is made; no compiler is needed.

Each function of `ir/*.ll` is the twin of the one of the same name in `emu.engine.interpreted`,
which is easier to read; the rules are told in `emu.engine.state`.  Two reasons for machine code.
Speed: the block callback runs at every block.  Safety: QEMU delivers an exception by a function
that may long-jump (a kernel stack that is not mapped), which is clean across machine code but not
across Python frames.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Mapping
from importlib.resources import files
from string import Template
from typing import Any

from unicorn.unicorn_py3.unicorn import uclib

from emu.engine import layout
from emu.engine.plans import Kind
from emu.engine.state import DELIVER, HANDLED, TB_REQUEST_CACHE, Word

# A number that no trap has.
_NO_TRAP = 0x7FFF_FFFF


def available() -> bool:
    """Tell whether llvmlite is installed."""
    return importlib.util.find_spec("llvmlite") is not None


def _address(function: str) -> int:
    return ctypes.cast(getattr(uclib, function), ctypes.c_void_p).value or 0


def _signed(value: int) -> int:
    """Return a word as LLVM's parser wants it."""
    return value - (value >> 63 << 64)


def _source(isa: str, addresses: Mapping[str, int], *, delivers: bool) -> str:
    names: dict[str, int] = {name: value for name, value in vars(layout).items() if isinstance(value, int)}
    names |= {word.name: word.value for word in Word}
    names |= {kind.name: kind.value for kind in Kind} | {"HANDLED": HANDLED, "DELIVER": DELIVER}
    names |= {name: _address(name) for name in ("uc_emu_stop", "uc_ctl", "uc_reg_read", "uc_reg_write")}
    names |= {
        "TB_REQUEST_CACHE": TB_REQUEST_CACHE - (1 << 32),  # as a signed int
        "X86_CS": layout.X86_SEGMENTS + 1 * 24,
        "X86_SS": layout.X86_SEGMENTS + 2 * 24,
        "do_interrupt": _address(layout.LAYOUTS[isa].deliver),
        "BREAKPOINT_NUMBER": layout.BREAKPOINT[isa],
        "DIRECT_SYSTEM_CALL": layout.SYSTEM_CALL.get(isa, _NO_TRAP) if delivers else _NO_TRAP,
        **{name: _signed(value) for name, value in addresses.items()},
    }
    ir = files("emu.engine").joinpath("ir")
    text = "\n".join(ir.joinpath(f"{name}.ll").read_text() for name in ("common", isa))
    return Template(text).substitute(names)


class Callbacks:
    """Compiled callbacks; attributes are the addresses of the functions, None where the ISA has none.

    `addresses`: of the engine's `words` and `table`, of which each half has `TABLE_MASK` + 1, two
    to the `TABLE_BITS`, entries; of the C functions `on_trap`, `int (uint32_t number)`, and
    `on_breakpoint`, `int64_t (uint64_t address)`, `on_late`, `int (uint64_t address)`; `PC_OFFSET`, where the
    CPU state has the pc, and `PC_AFTER`, how far it is behind a breakpoint; the bytes of a `WORD`
    and the bits of an address, `ADDRESS`; where the kernel's begin, `KERNEL_START`; and the table
    of `windows`.  `delivers`: system calls go to the guest's own vector; else they are traps like
    others.  Keep the object alive as long as they are hooked.
    """

    def __init__(self, isa: str, addresses: Mapping[str, int], *, delivers: bool) -> None:
        import llvmlite.binding as llvm  # noqa: PLC0415  optional, and 50 ms

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        module = llvm.parse_assembly(_source(isa, addresses, delivers=delivers))
        module.verify()
        machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
        passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
        passes.getModulePassManager().run(module, passes)
        self._engine: Any = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        self.block = self._function("block")
        self.trap = self._function("trap")
        self.invalid = self._function("invalid") if isa != "aarch64" else None
        self.system_call = self._function("system_call") if isa == "x86_64" and delivers else None
        self.refused = self._function("refused") if isa == "i386" else None
        self.plan = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_uint64)(self._function("plan").value or 0)
        """Carries out an encoded plan; for tests."""

    def _function(self, name: str) -> ctypes.c_void_p:
        return ctypes.c_void_p(self._engine.get_function_address(name))
