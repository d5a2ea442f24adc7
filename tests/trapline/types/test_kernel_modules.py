"""The types of the modules a kernel has loaded: those of their own files."""

from __future__ import annotations

import pytest

from emu.isa import ISAS
from trapline.d.types.rules import element_of, size_of
from trapline.d.types.types import Composite, resolve
from trapline.machine.kernel_machine import KernelOptions, NoKernelError, boot, kernel_guest


@pytest.fixture(params=ISAS)
def machine(request):
    return boot(kernel_guest(KernelOptions(isa=ISAS[request.param], load=("echo",))))


def test_a_module_has_its_own_symbols_types_and_signatures(machine):
    names, word = machine.names, machine.guest.isa.word
    lock = names.symbol("echo`echo_mtx")
    assert lock == names.symbol("echo_mtx")
    assert machine.guest.locate(lock.address).symbol == "echo_mtx"
    composite = resolve(lock.type)
    assert isinstance(composite, Composite)
    assert size_of(composite) == size_of(names.tag("struct", "mtx"))
    name = resolve(composite.member("lock_object").type).member("lo_name")
    assert size_of(name.type) == word
    assert element_of(name.type) is not None
    assert names.symbol("kernel`echo_mtx") is None
    assert names.symbol("hello`hello_modevent") is None
    assert names.tag("struct", "hello`mtx") is None
    device = machine.dtrace.open()
    probe = next(one for one in device.probes() if one.description.function == "echo_read")
    described = [device.probe_argument(probe.id, index) for index in range(3)]
    assert [one.native for one in described] == ["struct cdev *", "struct uio *", "int"]


def test_a_module_that_is_not_there_is_named_with_the_one_that_is_meant():
    with pytest.raises(NoKernelError, match=r"no kernel module 'ecko' .*did you mean 'echo'"):
        kernel_guest(KernelOptions(load=("ecko",)))
