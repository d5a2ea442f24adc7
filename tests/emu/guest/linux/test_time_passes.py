"""Virtual time passes whatever a program does, so that a deadline is always reached."""

import time

import pytest

from emu.guest.base import RunState
from emu.guest.linux.guest import LinuxGuest
from emu.guest.linux.kernel import CALL_TIME, SERVED_TIME
from emu.guest.linux.launch import Program
from emu.isa import ISAS
from tests.emu.guest.linux.elf_program import elf_program

# rt_sigaction(SIGILL, &action, 0, 8), an undefined instruction, a handler that returns to it, and the action.
FAULTS_FOR_EVER = {
    "x86_64": (
        "b80d000000 bf04000000 488d3517000000 31d2 41ba08000000 0f05 0f0b c3 b80f000000 0f05 0f1f00"
        "1d00400000000000 0000000400000000 1e00400000000000 0000000000000000"
    ),
    "i386": (
        "b8ae000000 bb04000000 b928004000 31d2 be08000000 cd80 0f0b c3 b8ad000000 cd80 8db600000000"
        "1a004000 00000004 1b004000 00000000 00000000"
    ),
    "aarch64": (
        "c81080d2 800080d2 c1000010 020080d2 030180d2 010000d4 00000000 c0035fd6"
        "1c00400000000000 0000000000000000 0000000000000000 0000000000000000"
    ),
    "riscv64": (
        "93086008 13054000 97050000 93850502 13060000 93068000 73000000 0000 67800000 0100 13000000"
        "1e00400000000000 0000000000000000 0000000000000000 0000000000000000"
    ),
}


def guest_of(isa, programs, folder):
    """A guest that is about to run an ISA's program, given in hexadecimal."""
    path = folder / "program"
    path.write_bytes(elf_program(isa, bytes.fromhex(programs[isa])))
    path.chmod(0o755)
    return LinuxGuest(ISAS[isa], Program(str(path)))


@pytest.mark.parametrize("isa", ISAS)
def test_a_program_that_only_faults_meets_its_deadline(isa, tmp_path):
    guest = guest_of(isa, FAULTS_FOR_EVER, tmp_path)
    begun = time.monotonic()
    assert guest.run(20_000_000) is RunState.RUNNING, "it never ends by itself"
    assert guest.now() >= 20_000_000
    assert time.monotonic() - begun < 30


# getppid for ever: a move, the system call, and a jump back to the move.
CALLS_FOR_EVER = {
    "x86_64": "b86e000000 0f05 ebf7",
    "i386": "b840000000 cd80 ebf7",
    "aarch64": "a81580d2 010000d4 feffff17",
    "riscv64": "9308d00a 73000000 6ff09fff",
}


@pytest.mark.parametrize("isa", ISAS)
def test_a_program_that_only_makes_system_calls_meets_its_deadline(isa, tmp_path):
    guest = guest_of(isa, CALLS_FOR_EVER, tmp_path)
    assert guest.run(10_000_000) is RunState.RUNNING, "it never ends by itself"
    calls = guest.engine.instructions // 3
    assert 10_000_000 / (CALL_TIME + 30) - 2 <= calls <= 10_000_000 / CALL_TIME + 2


# An instruction that the host serves, for ever: cpuid, or reading the counter of time.
SERVED_FOR_EVER = {
    "x86_64": "0fa2 ebfc",
    "i386": "0fa2 ebfc",
    "aarch64": "40e03bd5 ffffff17",
    "riscv64": "f32710c0 6ff0dfff",
}


@pytest.mark.parametrize("isa", ISAS)
def test_a_program_that_only_asks_the_cpu_meets_its_deadline(isa, tmp_path):
    guest = guest_of(isa, SERVED_FOR_EVER, tmp_path)
    assert guest.run(10_000_000) is RunState.RUNNING, "it never ends by itself"
    asked = guest.engine.instructions // 2
    assert 10_000_000 / (SERVED_TIME + 30) - 2 <= asked <= 10_000_000 / SERVED_TIME + 2


# Ten such instructions, and a jump to itself.
SERVED_BEFORE = {
    "x86_64": "0fa2" * 10 + "ebfe",
    "i386": "0fa2" * 10 + "ebfe",
    "aarch64": "40e03bd5" * 10 + "00000014",
    "riscv64": "f32710c0" * 10 + "6f000000",
}


@pytest.mark.parametrize("isa", ISAS)
def test_a_deadline_is_not_met_later_because_of_instructions_that_the_host_served(isa, tmp_path):
    guest = guest_of(isa, SERVED_BEFORE, tmp_path)
    assert guest.run(100_000) is RunState.RUNNING
    assert 100_000 <= guest.now() < 100_200
