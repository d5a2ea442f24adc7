"""A process that executes breakpoints and prints the nanoseconds of each, for `probes`.

The handler of SIGTRAP is machine code, too, so that no Python is part of the time.
"""

from __future__ import annotations

import ctypes
import mmap
import signal
import time
from typing import Final

from trapline.cost.host.probes import code

_SA_SIGINFO: Final = 4
# Bytes of sigset_t in the C library's struct sigaction, which begins with the handler.
_MASK: Final = 128
_COUNT: Final = 20_000
_TURNS: Final = 3


def _mapped(text: str) -> tuple[mmap.mmap, int]:
    data = bytes.fromhex(text)
    memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(data)
    return memory, ctypes.addressof(ctypes.c_char.from_buffer(memory))


def _fastest(address: int) -> float:
    function = ctypes.CFUNCTYPE(None, ctypes.c_long)(address)
    best = float("inf")
    for _ in range(_TURNS):
        start = time.perf_counter_ns()
        function(_COUNT)
        best = min(best, (time.perf_counter_ns() - start) / _COUNT)
    return best


def main() -> None:
    """Handle SIGTRAP with machine code, and measure."""
    host = code()
    kept = [_mapped(host[name]) for name in ("handler", "breakpoints", "nops")]
    handler, breakpoints, nops = (address for _, address in kept)
    pointer = ctypes.sizeof(ctypes.c_void_p)
    action = ctypes.create_string_buffer(pointer + _MASK + 2 * pointer)
    ctypes.c_void_p.from_buffer(action).value = handler
    ctypes.c_int.from_buffer(action, pointer + _MASK).value = _SA_SIGINFO
    if ctypes.CDLL(None, use_errno=True).sigaction(int(signal.SIGTRAP), action, None):
        raise OSError(ctypes.get_errno(), "sigaction")
    print(_fastest(breakpoints) - _fastest(nops))  # noqa: T201  the answer to the other process


if __name__ == "__main__":
    main()
