"""The experiment that finds QEMU's context for translation (TCGContext)."""

from __future__ import annotations

import ctypes
from typing import Any, Final

from emu.support.plain import function_address
from emu.unicorn_layout.bench import CODE, Bench, NotFoundError, only, places

_WORD: Final = 8
# Bytes of the context that are searched.
CONTEXT: Final = 0x400
# The largest number of arguments that a function of QEMU's gets; those that it does not have do no harm.
_FUNCTION: Final = ctypes.CFUNCTYPE(ctypes.c_uint64, *[ctypes.c_uint64] * 8)


def context_for_translation(bench: Bench) -> tuple[int, int, int]:
    """Return the end of all blocks, the place of the context's pointer, and that of the end in it.

    A function of QEMU's answers where the block at the pc is, or with the end of all blocks, its
    epilogue: nothing is translated here.  Other pointers may be shortly before the context by
    chance, so the nearest is taken.  Raises `NotFoundError`.
    """
    bench.uc.ctl_flush_tb()
    epilogue = look_up(bench, CODE)
    found = []
    for place in range(0, len(bench.engine_bytes()) - _WORD, _WORD):
        pointer = bench.reader.word(bench.handle + place) or 0
        data = bench.reader.read(pointer, CONTEXT) if pointer % _WORD == 0 else b""
        found += [(at, place) for at in places(data, epilogue, _WORD)]
    if not found:
        raise NotFoundError("the context for translation: no place fits")
    nearest = min(at for at, _ in found)
    return epilogue, only("the context for translation", (place for at, place in found if at == nearest)), nearest


def look_up(bench: Bench, pc: int) -> int:
    """Return the machine code of the block at a pc, or the epilogue."""
    bench.uc.reg_write(bench.subject.pc, pc)
    return int(qemu(bench, "helper_lookup_tb_ptr")(bench.env, *[0] * 7))


def qemu(bench: Bench, name: str) -> Any:
    """Return a function of QEMU's for this CPU."""
    return _FUNCTION(function_address(bench.function(f"{name}_{bench.subject.target}")))
