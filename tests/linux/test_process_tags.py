"""Probes of processes that cannot be made: the tags of libdtrace's dt_pid.c."""

from __future__ import annotations

import pytest

from emu.guest.kernel import images
from emu.isa import X86_64
from tests.linux.support import start
from trapline.consumer.compiling import ProcessProbeError
from trapline.framework.program import ProbeDescription


@pytest.fixture(scope="module")
def machine():
    return start("x86_64", [images.linux(X86_64, "zoo"), "recursion"])[0]


@pytest.mark.parametrize(
    ("tag", "provider", "module", "function", "name"),
    [
        ("D_PROC_FUNC", "pid100", "zoo", "nosuch", "entry"),
        ("D_PROC_NAME", "pid100", "zoo", "fib", "begin"),
        ("D_PROC_NAME", "pid100", "", "-", "entry"),
        ("D_PROC_OFF", "pid100", "zoo", "fib", "fff0"),
        ("D_PROC_ALIGN", "pid100", "zoo", "fib", "2"),
        ("D_PROC_LIB", "pid100", "libc.so", "-", "0"),
        ("D_PROC_GRAB", "pid9999", "zoo", "fib", "entry"),
        ("D_PROC_GRAB", "prov9999", "", "", ""),
    ],
)
def test_a_probe_that_cannot_be_made_has_its_tag(machine, tag, provider, module, function, name):
    with pytest.raises(ProcessProbeError) as caught:
        machine.probes.provide(ProbeDescription(provider, module, function, name))
    assert caught.value.tag == tag
