"""Kernels that cannot be run as requested: one line each.

These tests need kernels: `make kernels` fetches them.
"""

import pytest

from emu.guest.linux_kernel.errors import LinuxKernelError
from emu.isa import ISAS
from tests.support.command import run_trapline
from tests.trapline.linux_kernel.test_traced import every_kernel
from trapline.machine.linux_kernel_machine import LinuxKernelOptions, machine_of

MILLISECOND = 1_000_000


def refused(isa, *arguments):
    result = run_trapline(["dtrace", "--guest", "linux-kernel", "--isa", isa, "-n", "BEGIN { exit(0); }", *arguments])
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    return line


@every_kernel
def test_a_machine_with_too_little_memory_is_refused(isa):
    line = refused(isa, "-x", "ram=32m", "-c", "true")
    assert "more than half of the machine's 32 MiB of memory; give it more (-x ram=1g)" in line


@every_kernel
def test_a_command_that_no_terminal_takes_is_refused(isa):
    line = refused(isa, "-c", f"echo {'x' * 5000}")
    assert line.endswith("5005 bytes; a command for the console has at most 4000")


@every_kernel
def test_a_kernel_that_does_not_reach_user_space_in_its_time_is_given_up(isa):
    machine = machine_of(LinuxKernelOptions(isa=ISAS[isa]))
    machine.load()
    with pytest.raises(LinuxKernelError, match="did not reach user space: not within 0 s of its own time"):
        machine.boot(MILLISECOND)
