"""The experiments that are the same on every CPU: `struct uc_struct`, its hooks, and CPUState."""

from __future__ import annotations

import ctypes
from typing import Any, Final

import unicorn
from unicorn.unicorn_py3.unicorn import uclib

from emu.support.plain import function_address
from emu.unicorn_layout.bench import CODE, Bench, NotFoundError, agreed, only, places
from emu.unicorn_layout.context import context_for_translation

_WORD: Final = 8
_INT: Final = 4
# Addresses that no code has, one for each experiment.
_SENTINELS: Final = (0x5AB1_7E57_0DDB_A110, 0x5AB1_7E57_0DDB_B220)
# The bytes of a hook, and of a library, that are searched.
_HOOK_SIZE: Final = 0x80
_NEAR: Final = 1 << 28
_ON_COMPARE: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_ON_INVALIDATE: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t)
_DIFFERENT: Final = 1


def experiments(bench: Bench) -> None:
    """Find the common offsets, and add them to the bench's.  Raises `NotFoundError`."""
    bench.facts["CPU_EXCEPTION"] = _exception(bench)
    bench.facts["CPU_HALTED"] = _halted(bench)
    bench.facts["HOOK_RANGE"] = _hook_range(bench)
    bench.facts["UC_INVALIDATE"] = _invalidate(bench)
    bench.facts["UC_EXITS"] = _exits(bench)
    _, bench.facts["UC_TCG"], _ = context_for_translation(bench)


def _exception(bench: Bench) -> int:
    """Find the number of the current exception, which is -1 between two exceptions."""
    candidates = places(bench.cpu_bytes(), -1, _INT)
    for code, number in bench.subject.traps:
        seen = bench.trapped(code)
        if seen.number != number:
            raise NotFoundError(f"{code.hex()} raises exception {seen.number}, not {number}")
        candidates &= places(seen.cpu, number, _INT)
    return only("the number of the exception", candidates)


def _halted(bench: Bench) -> int:
    """Find the flag of a waiting CPU: its instruction and an exit set it, a stop does not."""
    candidates = places(bench.cpu_bytes(), 0, _INT)
    bench.run(bench.subject.wait)
    candidates &= places(bench.cpu_bytes(), 1, _INT)
    bench.run(bench.subject.nop * 8, count=3)
    candidates &= places(bench.cpu_bytes(), 0, _INT)
    bench.run(bench.subject.nop * 2 + bench.subject.wait)
    return only("the flag that the CPU waits", candidates & places(bench.cpu_bytes(), 1, _INT))


def _hook_range(bench: Bench) -> int:
    """Find the range of a hook, and move it."""
    length = len(bench.subject.nop)
    called: list[int] = []
    begin, end = _SENTINELS
    handle = bench.uc.hook_add(
        unicorn.UC_HOOK_CODE, lambda _uc, address, _size, _data: called.append(address), None, begin, end
    )
    data = bench.reader.read(handle, _HOOK_SIZE)
    place = only("the range of a hook", places(data, begin, _WORD) & {at - _WORD for at in places(data, end, _WORD)})
    moved = CODE + 2 * length
    bench.write(handle + place, moved)
    bench.write(handle + place + _WORD, moved)
    bench.run(bench.subject.nop * 4 + bench.subject.wait)
    bench.uc.hook_del(handle)
    if called != [moved]:
        raise NotFoundError("the range of a hook: moving it has no effect")
    return place


def _invalidate(bench: Bench) -> int:
    """Find the function that drops translated code: the public call passes its arguments to it."""
    called: list[tuple[int, int, int]] = []

    def note(engine: int, address: int, size: int) -> int:
        called.append((engine, address, size))
        return 0

    callback = _ON_INVALIDATE(note)
    ours = function_address(callback)
    near = function_address(uclib.uc_open)
    found = set()
    for place in range(0, len(bench.engine_bytes()) - _WORD, _WORD):
        function = bench.reader.word(bench.handle + place) or 0
        if abs(function - near) >= _NEAR:
            continue
        called.clear()
        bench.write(bench.handle + place, ours)
        bench.uc.ctl_remove_cache(CODE, CODE + 12)
        bench.write(bench.handle + place, function)
        if called == [(bench.handle, CODE, 12)]:
            found.add(place)
    return only("the function that forgets code", found)


def _exits(bench: Bench) -> int:
    """Find the tree of exits by its only key, and its function by a replacement."""
    bench.uc.ctl_exits_enabled(enable=True)

    def fits(sentinel: int) -> set[int]:
        bench.uc.ctl_set_exits([sentinel])
        size = len(bench.engine_bytes())
        return {at for at in range(0, size - _WORD, _WORD) if _key(bench, bench.handle + at) == sentinel}

    place = agreed("the tree of exits", map(fits, _SENTINELS))
    asked: list[int] = []

    def compare(key: int, _node: int, _data: Any) -> int:
        asked.append(bench.reader.word(key) or 0)
        return _DIFFERENT

    callback = _ON_COMPARE(compare)
    tree = bench.reader.word(bench.handle + place) or 0
    old = bench.reader.word(tree + _WORD) or 0
    bench.write(tree + _WORD, function_address(callback))
    bench.run(bench.subject.nop * 2 + bench.subject.wait)
    bench.write(tree + _WORD, old)
    if CODE + len(bench.subject.nop) not in asked:
        raise NotFoundError("the tree of exits: its function is not called")
    bench.uc.ctl_exits_enabled(enable=False)
    return place


def _key(bench: Bench, place: int) -> int | None:
    """Follow the pointers from the engine to the key of a tree's root."""
    word: int | None = place
    for _ in range(4):
        word = bench.reader.word(word) if word else None
    return word
