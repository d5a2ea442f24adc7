"""The hash of a key in machine code, and its bucket."""

from __future__ import annotations

from typing import Final

from emu.native.builder import Function, Module
from emu.native.operations import Value, Word

_LANES: Final = 4
_WORD: Final = 8
_BLOCK: Final = _LANES * _WORD
# Odd numbers whose bits have no pattern: 2**64 divided by the golden ratio, and others of the same kind.
_FACTOR: Final = 0x9E37_79B9_7F4A_7C15
_FINAL: Final = 0xBF58_476D_1CE4_E5B9
_STARTS: Final = (0x243F_6A88_85A3_08D3, 0x1319_8A2E_0370_7344, 0xA409_3822_299F_31D0, 0x082E_FA98_EC4E_6C89)
_ROTATION: Final = 29


def _mixed(f: Function, state: Word, word: Word) -> Value:
    """Return a lane's state after one more word."""
    both = f.xor(state, word)
    rotated = f.or_(f.shl(both, _ROTATION), f.lshr(both, 64 - _ROTATION))
    return f.mul(rotated, _FACTOR)


def hash_function(module: Module) -> Function:
    """Write `u64 hash(key, size)`, for this module.

    Four lanes process a word each, so that their multiplications overlap; the rest after the last
    32 bytes goes through the first lane, by words and then by bytes.
    """
    f = module.function("hash", 2, local=True)
    key, size = f.parameters
    lanes = [f.variable(start) for start in _STARTS]
    at, end = f.variable(key), f.add(key, size)
    with f.loop() as loop:
        place = at.get()
        loop.leave_if(f.ugt(f.add(place, _BLOCK), end))
        for index, lane in enumerate(lanes):
            lane.set(_mixed(f, lane.get(), f.load(place, index * _WORD)))
        at.set(f.add(place, _BLOCK))
    for piece in (_WORD, 1):
        with f.loop() as loop:
            place = at.get()
            loop.leave_if(f.ugt(f.add(place, piece), end))
            lanes[0].set(_mixed(f, lanes[0].get(), f.load(place, 0, piece)))
            at.set(f.add(place, piece))
    total = f.word(size)
    for lane in lanes:
        total = _mixed(f, total, lane.get())
    total = f.mul(f.xor(total, f.lshr(total, 32)), _FINAL)
    f.ret(f.xor(total, f.lshr(total, 32)))
    return f


def bucket(f: Function, hashed: Word, buckets: Word) -> Value:
    """Return which of some buckets, at most 2**32, a hash means."""
    return f.lshr(f.mul(f.lshr(hashed, 32), buckets), 32)
