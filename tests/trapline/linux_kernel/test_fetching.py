"""Kernels that cannot be kept: Debian's programs fail, or what the user names does not fit."""

import os

import pytest

from emu.guest.kernel.boot import images
from emu.isa import ISAS
from tests.support.command import run_trapline

_APT = """#!/bin/sh
echo "E: Failed to fetch http://debian.example/Packages.xz  File has unexpected size" >&2
echo "   Hashes of expected file:" >&2
echo "E: Some index files failed to download. They have been ignored, or old ones used instead." >&2
exit 100
"""


def test_the_first_error_of_apt_is_the_reason(tmp_path, monkeypatch):
    program = tmp_path / "apt-get"
    program.write_text(_APT)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("TRAPLINE_DATA", str(tmp_path))
    result = run_trapline(["kernel", "get", "riscv64"])
    assert result.returncode == 1
    *_, line = result.stderr.splitlines()
    assert line.endswith(
        "apt-get update: E: Failed to fetch http://debian.example/Packages.xz  File has unexpected size"
    )


def _image(path):
    """Write the least that is taken for RISC-V's kernel."""
    path.write_bytes(bytes(56) + b"RSC\x05" + bytes(4) + b"Linux version 6.1.2-test (someone)\0")
    return path


@pytest.mark.parametrize(
    ("busybox", "wrong"),
    [
        (None, "not an ELF file; --busybox names a static program for RISC-V"),
        (images.linux(ISAS["aarch64"], "zoo"), "made for aarch64, not riscv64; --busybox names a static program"),
        (images.linux(ISAS["riscv64"], "zoo-dyn"), "ld-linux-riscv64-lp64d.so.1, which is not there; --busybox names"),
    ],
)
def test_a_busybox_that_the_kernel_cannot_start_is_refused(busybox, wrong, tmp_path, monkeypatch):
    monkeypatch.setenv("TRAPLINE_DATA", str(tmp_path / "data"))
    if busybox is None:
        busybox = tmp_path / "busybox.conf"
        busybox.write_text("BUSYBOXDIR=/bin\n")
    words = ["--image", str(_image(tmp_path / "Image")), "--busybox", str(busybox)]
    result = run_trapline(["kernel", "get", "riscv64", *words])
    assert (result.returncode, wrong in result.stderr, result.stderr.count("\n")) == (1, True, 1), result.stderr
    assert not list(tmp_path.glob("data/kernels/*/*"))
