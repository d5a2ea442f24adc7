"""The experiments that find what it takes to run QEMU's translated blocks without `emu_start`.

Only `trapline check` does that (`trapline.lab.check.native`), so they are made when it asks first.
Most of them compare the structures just before and after one public call, in the middle of a run.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final

import unicorn
from unicorn.unicorn_py3.unicorn import uclib

from emu.support.plain import function_address
from emu.unicorn_layout.bench import CODE, NOWHERE, Bench, NotFoundError, agreed, only, places
from emu.unicorn_layout.context import CONTEXT, context_for_translation, look_up, qemu

_WORD: Final = 8
_INT: Final = 4
_HALF: Final = 2
# Unmapped addresses, and addresses that no code has.
_UNMAPPED: Final = (0x7654_3000, 0x1234_5000)
_SENTINELS: Final = (0x5AB1_7E57_0DDB_C330, 0x5AB1_7E57_0DDB_D440)
# Counts of instructions after which a run ends; it ends sooner.
_COUNTS: Final = (0x0123_4567, 0x0765_4321)
# Bytes that are searched: of struct uc_struct with its jump buffers; of a hook; of a block.
_ENGINE: Final = 0x8000
_HOOK_SIZE: Final = 0x80
_BLOCK: Final = 0x80
_NEAR: Final = 1 << 28
# The prologue is so close before the epilogue.
_PROLOGUE: Final = 0x1000
# Nested runs: enough for the level; then for buffers in the space that the first ones leave untouched.
_FEW, _MANY = 4, 16
_SKIPPED: Final = 0x400
_POISON: Final = 0xA5
_BUFFERS: Final = 3
_CLUSTER: Final = 5
# The largest number of arguments that a spied function gets; those that it does not have do no harm.
_SPIED: Final = ctypes.CFUNCTYPE(ctypes.c_uint64, *[ctypes.c_uint64] * 8)
_ENTERED: Final = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)


def experiments(bench: Bench) -> dict[str, int]:
    """Return the offsets that are the same on every CPU.  Raises `NotFoundError`."""
    nested = _nested(bench)
    return {
        **nested,
        **_requests(bench, nested["UC_JUMP_BUFFERS"]),
        "UC_INVALID_ADDRESS": agreed("the refused address", (_refused(bench, address) for address in _UNMAPPED)),
        **_counting(bench),
        "HOOK_OUT": _out(bench),
        **_stops(bench),
        **_translated(bench),
    }


def _code(bench: Bench) -> bytes:
    return bench.subject.nop * 4 + bench.subject.wait


def _during(bench: Bench, action: Callable[[], object]) -> None:
    """Do something before the first instruction of a run."""
    left = [action]
    handle = bench.uc.hook_add(unicorn.UC_HOOK_CODE, lambda *_: left.pop()() if left else None, None, CODE, CODE)
    bench.run(_code(bench))
    bench.uc.hook_del(handle)


def _changed(before: bytes, after: bytes, size: int, to: int) -> set[int]:
    """Return the places of numbers that were 0."""
    return places(before, 0, size) & places(after, to, size)


def _requests(bench: Bench, end: int) -> dict[str, int]:
    """Find what a stop and a new pc set in the engine and in the CPU, and what a run's end sets.

    It is before `end` in the engine; there are the jump buffers, where any byte may change.
    """
    seen: list[tuple[bytes, bytes]] = []

    def around(action: Callable[[], object]) -> None:
        seen.append((bench.engine_bytes()[:end], bench.cpu_bytes()))
        action()
        seen.append((bench.engine_bytes()[:end], bench.cpu_bytes()))

    _during(bench, lambda: around(bench.uc.emu_stop))
    ended = bench.engine_bytes()
    _during(bench, lambda: around(lambda: bench.uc.reg_write(bench.subject.pc, CODE)))
    (running, quiet), (stopped, asked), (again, _), (moved, _) = seen
    high = only("the upper half of the budget", _changed(quiet, asked, _HALF, -1))
    done = _changed(running, ended, 1, 1) & _changed(again, bench.engine_bytes(), 1, 1)
    return {
        "UC_STOP_REQUEST": only("the request to stop", _changed(running, stopped, 1, 1)),
        "UC_QUIT_REQUEST": only("the request to leave a block", _changed(again, moved, 1, 1)),
        "UC_DONE": only("the mark of a run's end", done - _changed(running, stopped, 1, 1)),
        "CPU_EXIT_REQUEST": only("the CPU's request to stop", _changed(quiet, asked, 1, 1)),
        "CPU_BUDGET": only("the budget", places(asked, bench.cpu + high - _HALF, _WORD)),
    }


def _refused(bench: Bench, address: int) -> set[int]:
    """Return the places of an address at which a run could not begin."""
    try:
        bench.uc.emu_start(address, 0)
    except unicorn.UcError:
        return places(bench.engine_bytes(), address, _WORD)
    raise NotFoundError(f"{address:#x} can be executed")


def _nested(bench: Bench) -> dict[str, int]:
    """Find the level of nested runs, and the jump buffers before it, one for each level.

    The memory of buffers that no run has used is 0; it is poisoned, so that the first byte of a
    buffer is known when it is written.
    """
    few = _levels(bench, _FEW)
    level = only("the level of a run", set.intersection(*(places(data, n, _INT) for n, data in enumerate(few))))
    start = level
    while few[-1][start - _WORD : start] == bytes(_WORD):
        start -= _WORD
    start += _SKIPPED
    ctypes.memset(bench.handle + start, _POISON, max(0, level - start))
    many = _levels(bench, _MANY)
    begins = []
    for before, after in zip(many[-_BUFFERS - 1 :], many[-_BUFFERS:], strict=False):
        written = [at for at in range(start, level) if before[at] != after[at]]
        begins.append(min(written, default=0))
    sizes = {later - sooner for sooner, later in pairwise(begins)}
    size = only("the size of a jump buffer", sizes)
    first = begins[-1] - (_MANY - 1) * size
    if size <= 0 or first <= 0 or (level - first) % size:
        raise NotFoundError("the jump buffers: they are not before the level")
    return {"UC_LEVEL": level, "UC_JUMP_BUFFERS": first}


def _counting(bench: Bench) -> dict[str, int]:
    """Find the number of instructions after which a run ends, and of those it has executed."""
    limits, counters = [], []
    for limit in _COUNTS:
        seen: list[bytes] = []
        handle = bench.uc.hook_add(unicorn.UC_HOOK_CODE, lambda *_, seen=seen: seen.append(bench.engine_bytes()))
        bench.run(_code(bench), count=limit)
        bench.uc.hook_del(handle)
        limits += [places(data, limit, _WORD) for data in seen]
        # The hook that counts is called before this one, or after it.
        counters.append(set.union(*(_increasing(seen, first) for first in (0, 1))))
    return {
        "UC_COUNT": agreed("the number of instructions of a run", limits),
        "UC_COUNTER": agreed("the number of instructions that were executed", counters),
    }


def _increasing(seen: list[bytes], first: int) -> set[int]:
    return set.intersection(*(places(data, number, _WORD) for number, data in enumerate(seen, first)))


def _levels(bench: Bench, depth: int) -> list[bytes]:
    """Return the engine's bytes outside a run, and in so many runs, each in a hook of another."""
    seen = [bench.reader.read(bench.handle, _ENGINE)]
    end = CODE + 2 * len(bench.subject.nop)

    def enter(uc: unicorn.Uc, _address: int, _size: int, _data: Any) -> None:
        seen.append(bench.reader.read(bench.handle, _ENGINE))
        if len(seen) <= depth:
            uc.emu_start(CODE, end)

    handle = bench.uc.hook_add(unicorn.UC_HOOK_CODE, enter, None, CODE, CODE)
    bench.uc.mem_write(CODE, _code(bench))
    bench.uc.ctl_flush_tb()
    bench.uc.emu_start(CODE, end)
    bench.uc.hook_del(handle)
    return seen


def _out(bench: Bench) -> int:
    """Find the byte of a hook that takes it out."""
    called: list[int] = []
    begin, end = _SENTINELS
    hook = bench.uc.hook_add(unicorn.UC_HOOK_INTR, lambda _uc, number, _data: called.append(number), None, begin, end)
    data = bench.reader.read(hook, _HOOK_SIZE)
    limit = only("the range of a hook", places(data, begin, _WORD))

    def taken(place: int, value: int) -> bool:
        called.clear()
        bench.write(hook + place, value, 1)
        bench.run(bench.subject.traps[0][0])
        return bool(called)

    found = only("the byte that takes a hook out", (at for at in range(limit) if not data[at] and _switches(taken, at)))
    bench.uc.hook_del(hook)
    return found


def _switches(taken: Callable[[int, int], bool], place: int) -> bool:
    """Return whether 1 takes the hook out, and 0 brings it back; 0 is written in any case."""
    out = not taken(place, 1)
    return taken(place, 0) and out


def _stops(bench: Bench) -> dict[str, int]:
    """Find the function that is asked about each exception; some CPUs have none."""
    fits = []
    for code, number in bench.subject.traps:
        calls = {place: _spied(bench, place, code) for place in _functions(bench)}
        fits.append({place for place, called in calls.items() if (bench.handle, number) in called})
    found = set.intersection(*fits)
    return {"UC_STOP_INTERRUPT": only("the function that is asked about exceptions", found)} if found else {}


def _functions(bench: Bench) -> Iterator[int]:
    """Yield the places of the library's functions in the engine."""
    near = function_address(uclib.uc_open)
    for place in range(0, len(bench.engine_bytes()) - _WORD, _WORD):
        if abs((bench.reader.word(bench.handle + place) or 0) - near) < _NEAR:
            yield place


def _spied(bench: Bench, place: int, code: bytes) -> set[tuple[int, int]]:
    """Return the first two arguments with which a function of the engine is called in a run."""
    called: set[tuple[int, int]] = set()
    address = bench.reader.word(bench.handle + place) or 0
    function = _SPIED(address)

    def spy(*arguments: int) -> int:
        called.add((arguments[0], arguments[1] & 0xFFFF_FFFF))
        return int(function(*arguments))

    callback = _SPIED(spy)
    bench.write(bench.handle + place, function_address(callback))
    bench.run(code)
    bench.write(bench.handle + place, address)
    return called


def _translated(bench: Bench) -> dict[str, int]:
    """Find the two ends of QEMU's blocks, and what a block describes."""
    bench.uc.mem_write(CODE, _code(bench))
    epilogue, place, at = context_for_translation(bench)
    context = bench.reader.word(bench.handle + place) or 0
    for start in (CODE, CODE + len(bench.subject.nop)):
        bench.uc.emu_start(start, NOWHERE)
    return {
        "TCG_EPILOGUE": at,
        "TCG_PROLOGUE": only("the prologue", _prologues(bench, context, epilogue)),
        **_description(bench, context, epilogue),
        "CPU_CLUSTER": only("the cluster", _clusters(bench, epilogue)),
    }


def _prologues(bench: Bench, context: int, epilogue: int) -> Iterator[int]:
    """Yield the places of functions that are called with the CPU's registers and a block's code."""
    code = look_up(bench, CODE)
    called: list[tuple[int, int]] = []

    def enter(env: int, block: int) -> int:
        called.append((env, block))
        bench.uc.emu_stop()
        return 0

    callback = _ENTERED(enter)
    for place in range(0, CONTEXT, _WORD):
        function = bench.reader.word(context + place) or 0
        if not epilogue - _PROLOGUE < function < epilogue:
            continue
        called.clear()
        bench.write(context + place, function_address(callback))
        bench.uc.emu_start(CODE, NOWHERE)
        bench.write(context + place, function)
        if called == [(bench.env, code)]:
            yield place


def _description(bench: Bench, context: int, epilogue: int) -> dict[str, int]:
    """Find a block's address and that of its machine code in its description."""
    found: dict[str, list[set[int]]] = {"BLOCK_PC": [], "BLOCK_CODE": []}
    for pc in (CODE, CODE + len(bench.subject.nop)):
        code = look_up(bench, pc)
        if code == epilogue:
            raise NotFoundError("a block: it is not found after a run")
        block = int(qemu(bench, "tcg_tb_lookup")(context, code, *[0] * 6))
        data = bench.reader.read(block, _BLOCK)
        found["BLOCK_PC"].append(places(data, pc, _WORD))
        found["BLOCK_CODE"].append(places(data, code, _WORD))
    return {name: agreed(name, fits) for name, fits in found.items()}


def _clusters(bench: Bench, epilogue: int) -> Iterator[int]:
    """Yield the places of the CPU's cluster: with another one no block is found."""
    for place in places(bench.cpu_bytes(), -1, _INT):
        bench.write(bench.cpu + place, _CLUSTER, _INT)
        lost = look_up(bench, CODE) == epilogue
        bench.write(bench.cpu + place, -1, _INT)
        if lost and look_up(bench, CODE) != epilogue:
            yield place
