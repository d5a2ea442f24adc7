"""Accesses of 16 bytes that must be aligned: translated code tests their addresses, at no cost.

QEMU's code for an access tests with one comparison whether the address is in the TLB, and on demand
of the translator also whether it is aligned.  QEMU 5 does not demand it on x86.  The functions that
translate an access of 8 bytes are replaced in the library's table of calls: if the instruction is
one of `UnicornModel.aligned`, which is decided before it is translated, its first access demands
16 bytes.  For an address that is not aligned QEMU calls a function of the CPU, which x86's has not:
it is given one that raises #GP.

Source: Unicorn 2.1.4, qemu/target/i386/translate.c (gen_ldo_env_A0, gen_sto_env_A0),
qemu/include/exec/memop.h, qemu/accel/tcg/cputlb.c (load_helper), qemu/include/hw/core/cpu.h
(CPUClass.do_unaligned_access); the offsets were observed.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Final

from emu.engine.qemu import rewriters
from emu.engine.qemu.layout import CPU_ENV
from emu.engine.qemu.library import address
from emu.isa.unicorn_model import UnicornModel
from emu.native.builder import Module
from emu.native.link import Linked

_LOAD, _STORE, _RAISE = "tcg_gen_qemu_ld_i64", "tcg_gen_qemu_st_i64", "raise_exception_err_ra"
# From the function to its entry in the table of calls (.got.plt), in the known library.
_ENTRIES: Final = {_LOAD: 0x14C_2038 - 0x40_D690, _STORE: 0x14C_4058 - 0x40_D6D0}
# In CPUState: its class; in that: the function for an address that is not aligned.
_CLASS, _UNALIGNED = 0x8A50 - 0x8A0, 0x18
# MO_ALIGN_16
_DEMAND: Final = 0x40
_PROTECTION: Final = 13

# The context for translation (TCGContext) whose next access has to be aligned; 0: none.
PENDING: Final = ctypes.c_uint64()


def install(model: UnicornModel, cpu: int) -> None:
    """Make the CPU whose CPUState is at an address raise #GP."""
    if runs(model):
        place = ctypes.c_uint64.from_address(ctypes.c_uint64.from_address(cpu + _CLASS).value + _UNALIGNED)
        code = _replaced(model.target)
        if place.value in (0, code.address("unaligned")):
            place.value = code.address("unaligned")


def runs(model: UnicornModel) -> bool:
    """Return whether such accesses of a CPU are tested here."""
    return model.aligned is not None and rewriters.runs(rewriters.SSE_ALIGNMENT)


@cache
def _replaced(target: str) -> Linked:
    """Replace the functions that translate accesses, for all engines of a CPU."""
    functions = {name: address(f"{name}_{target}") for name in (_LOAD, _STORE, _RAISE)}
    module = Module()
    for name in _ENTRIES:
        f = module.function(f"new.{name}", 5)
        context, value, place, index, operation = f.parameters
        demanded = f.variable(operation)
        pending = module.symbol("trapline.pending")
        with f.when(f.eq(f.load(pending), context), likely=False):
            f.store(pending, 0)
            demanded.set(f.or_(operation, _DEMAND))
        f.ret(f.call(module.external(name, 5), context, value, place, index, demanded.get()))
    f = module.function("unaligned", 5)
    cpu, _, _, _, back = f.parameters
    f.ret(f.call(module.external(_RAISE, 4), f.load(cpu, CPU_ENV), _PROTECTION, 0, back))
    linked = Linked(module.compiled("alignment"), {**functions, "trapline.pending": ctypes.addressof(PENDING)})
    for name, distance in _ENTRIES.items():
        ctypes.c_uint64.from_address(functions[name] + distance).value = linked.address(f"new.{name}")
    return linked
