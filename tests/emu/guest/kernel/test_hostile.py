"""The kernel guest survives hostile programs: random system calls, damaged program files."""

from random import Random

import pytest

from emu.guest.base import RunState
from emu.guest.kernel.boot import images
from emu.guest.kernel.guest import KernelGuest
from emu.isa import ISAS
from tests.fuzz.mutation import damage

isas = pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)
SECOND = 1_000_000_000
# Where an ELF file has its headers.
HEADERS = range(64 + 8 * 56)


def run(isa, script, seconds, files=None):
    """Run a script for some virtual seconds; return how the run ended, and what was printed."""
    screen = bytearray()
    guest = KernelGuest(isa, files={"etc/rc": script.encode(), **(files or {})}, console=screen.extend)
    guest.boot()
    return guest.run(seconds * SECOND), screen.decode(errors="replace")


def seeded(number):
    """Return a generator that gives the same in every run."""
    return Random(number)  # noqa: S311  reproducible, not secret


@isas
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_system_calls_leave_the_kernel_alive(isa, seed):
    state, screen = run(isa, f"sysfuzz {seed} 3200\necho still here\n", 120)
    assert "sysfuzz: 3200 calls\nstill here\n" in screen
    assert state is RunState.FINISHED


@isas
@pytest.mark.parametrize("program", ["bin/true", "bin/crash", "bin/query", "libexec/ld-elf.so.1"])
def test_damaged_programs_leave_the_kernel_alive(isa, program):
    whole = images.programs(isa)[program]
    files = {f"bin/bad{n}": damage(seeded(n), whole, 8, HEADERS) for n in range(12)}
    # In the background, because one may loop forever; the script continues.
    script = "".join(f"bad{n} &\n" for n in range(12)) + "sleep 0.5\necho still here\n"
    _state, screen = run(isa, script, 2, files)
    assert "still here\n" in screen


@isas
def test_damaged_libraries_leave_the_kernel_alive(isa):
    for seed in range(4):
        library = damage(seeded(seed), images.programs(isa)["lib/libc.so.7"], 8, HEADERS)
        # The shell is linked statically; cat and echo are not: the shell itself reports their endings.
        state, _screen = run(isa, "cat /etc/motd\nexit 0\n", 2, {"lib/libc.so.7": library})
        assert state is RunState.FINISHED
