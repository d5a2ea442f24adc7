"""The chain of breakpoint handlers."""

from __future__ import annotations

import pytest

from emu.displaced.cpu_core import CpuFlag
from emu.probe.trap import TrapHandler


@pytest.fixture
def traps():
    return TrapHandler()


def answering(rval, asked, name):
    def handler(address, frame, extra):
        asked.append((name, address, frame, extra))
        return rval

    return handler


def test_the_newest_handler_is_asked_first_and_the_first_claim_ends_it(traps):
    asked = []
    traps.add(answering(5, asked, "old"))
    traps.add(answering(1, asked, "middle"))
    traps.add(answering(0, asked, "new"))
    assert traps.invop(0x1000, "frame", 7) == 1
    assert asked == [("new", 0x1000, "frame", 7), ("middle", 0x1000, "frame", 7)]


def test_an_unclaimed_breakpoint_is_0(traps):
    assert traps.invop(0x1000, "frame") == 0
    traps.add(lambda *_: 0)
    assert traps.invop(0x1000, "frame") == 0


def test_the_trap_frame_is_there_during_the_handlers_and_only_then(traps):
    seen = []
    traps.add(lambda *_: seen.append(traps.core.trapframe) or 1)
    assert traps.core.trapframe is None
    traps.invop(0x1000, "frame")
    assert seen == ["frame"]
    assert traps.core.trapframe is None


def test_the_trap_frame_is_gone_after_a_handler_that_raised(traps):
    traps.add(lambda *_: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        traps.invop(0x1000, "frame")
    assert traps.core.trapframe is None


def test_removing_takes_out_one_and_leaves_the_order(traps):
    asked = []
    handlers = [answering(0, asked, name) for name in "abc"]
    for handler in handlers:
        traps.add(handler)
    traps.remove(handlers[1])
    traps.invop(0x1000, "frame")
    assert [name for name, *_ in asked] == ["c", "a"]


def test_removing_a_handler_that_is_not_in_the_chain_panics(traps):
    with pytest.raises(RuntimeError, match="not in the invop chain"):
        traps.remove(print)


def test_the_fault_flags_are_those_of_the_kernel():
    # FreeBSD's CPU_DTRACE_FAULT and CPU_DTRACE_ERROR.
    assert CpuFlag.FAULT == 0x13FC
    assert CpuFlag.ERROR == 0x13FE
