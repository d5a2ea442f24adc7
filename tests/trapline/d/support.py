"""Compiling for tests, and a DIF machine to run what comes out."""

from __future__ import annotations

from types import SimpleNamespace

from emu.displaced.cpu_core import CpuCore
from tests.support.fake_guest import FakeGuest
from trapline import dof
from trapline.d.compiler import CompileContext, Form, compile_program
from trapline.d.errors import CompileError
from trapline.dof import encode
from trapline.framework.base.device import ProbeInfo
from trapline.framework.base.program import STABLE, ProbeDescription
from trapline.framework.device.dtrace import DTrace
from trapline.options import Options

# A probe that every description matches.
ANY = ProbeInfo(1, ProbeDescription(), SimpleNamespace(args=STABLE))


def compile_text(
    text, *, form=Form.SCRIPT, options=(), arguments=("dtrace",), probes=lambda _wanted: (ANY,), names=None
):
    """Compile a program for which every description matches."""
    chosen = Options()
    for name in options:
        chosen.set(name)
    extra = {} if names is None else {"names": names}
    return compile_program(text, CompileContext(chosen, probes, arguments, {"pid": 42}, form, **extra))


def tag_of(text, **how):
    """Compile a program that is refused, and return the tag."""
    try:
        compile_text(text, **how)
    except CompileError as error:
        return error.tag
    return ""


class Calculator:
    """Evaluates D expressions in BEGIN of a guest that does nothing else."""

    def __init__(self):
        self.guest = FakeGuest()
        self.dtrace = DTrace(self.guest, CpuCore(), dof)

    def run(self, text):
        """Run a program to the end of BEGIN; return the data of its first record, and the device."""
        device = self.dtrace.open()
        device.set_option("bufsize", 1 << 16)
        device.set_option("aggsize", 1 << 16)
        device.set_option("dynvarsize", 1 << 14)
        device.enable(encode(compile_text(text, probes=device.probes)))
        device.go()
        return device

    def value(self, expression):
        """Return the 64-bit pattern of an expression of integer type."""
        device = self.run(f"BEGIN {{ trace((int64_t)({expression})); }}")
        record = device.buffer_snapshot(0).data
        device.close()
        return int.from_bytes(record[16:24], "little")
