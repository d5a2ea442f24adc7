"""Tracing of a kernel's boot.  These tests need kernels: `make kernels` fetches them."""

import re

from tests.support.command import run_trapline
from tests.trapline.linux_kernel.test_traced import every_kernel

# The clock's values: time stamps of messages, and one message about clocks.
_CLOCK = re.compile(r"(?m)^\[ *\d+\.\d+\]|Marking stable.*")


def booted(isa, program):
    command = ["dtrace", "--guest", "linux-kernel", "--isa", isa, "-x", "boot", "--console", "-qn", program]
    result = run_trapline([*command, "-c", "echo booted"])
    assert result.returncode == 0, result.stderr
    return _CLOCK.sub("", result.stdout).strip().splitlines()


@every_kernel
def test_a_boot_with_probes_prints_what_one_without_prints(isa):
    # `make bench` has all functions (benchmarks/boot.py); here are enough of them to fire at every initcall.
    plain = booted(isa, "BEGIN { }")
    probed = booted(isa, 'fbt::*alloc*:entry { @ = count(); } END { printa("%@d firings\\n", @); }')
    assert probed[:-1] == plain
    assert int(probed[-1].split()[0]) > 10_000


def test_only_a_linux_kernel_is_booted_under_trace():
    result = run_trapline(["dtrace", "-x", "boot", "-n", "BEGIN", "-c", "ls"])
    assert result.returncode == 1
    assert result.stderr == "dtrace: -x boot is for Linux kernels: add --guest linux-kernel\n"


def test_the_option_has_no_value():
    result = run_trapline(["dtrace", "--guest", "linux-kernel", "-x", "boot=1", "-n", "BEGIN"])
    assert result.returncode == 2
    assert "-x boot=1: it has no value" in result.stderr
