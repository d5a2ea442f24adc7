"""Sockets of TCP and UDP do in the guest what they do on Linux, on every ISA.

The programs in `inet` print the result of each call. They run on this host's own kernel and in the
guest, and the outputs are compared.
"""

import platform
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from emu.isa import ISAS
from tests.emu.guest.linux.support import run

SOURCES = sorted((Path(__file__).parent / "inet").glob("*.c"))
COMPILERS = {
    "x86_64": "x86_64-linux-gnu-gcc",
    "aarch64": "aarch64-linux-gnu-gcc",
    "riscv64": "riscv64-linux-gnu-gcc",
    "i386": "i686-linux-gnu-gcc",
}


def has_loopback():
    """Return whether this host has both versions of IP, as the guest has."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6), socket.create_server(("127.0.0.1", 0)):
            return True
    except OSError:
        return False


def compiled(isa, directory):
    """Return the cases as a program for an ISA."""
    compiler = shutil.which(COMPILERS[isa])
    if compiler is None:
        pytest.skip(f"no {COMPILERS[isa]}")
    program = directory / f"cases-{isa}"
    subprocess.run([compiler, "-O1", "-Wall", "-Werror", "-static", "-o", program, *SOURCES], check=True)
    return program


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """Return what the cases print on this host."""
    if platform.system() != "Linux" or platform.machine() != "x86_64" or not has_loopback():
        pytest.skip("the cases need Linux on x86-64 with 127.0.0.1 and ::1")
    program = compiled("x86_64", tmp_path_factory.mktemp("native"))
    return subprocess.run([program], capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.parametrize("isa", ISAS)
def test_the_cases_print_what_linux_prints(isa, expected, tmp_path):
    ran = run(isa, (compiled(isa, tmp_path),))
    assert ran.output.splitlines() == [*expected.splitlines(), "exit 0"]
