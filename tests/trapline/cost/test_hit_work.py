"""An engine's exceptions are counted once each, and still handled."""

from types import SimpleNamespace

import pytest

from emu.engine.state import DELIVER, HANDLED
from trapline.cost.hit_work import Observer

UNDEFINED, PAGE_FAULT = 6, 14


@pytest.fixture
def engine():
    """An engine that notes what reaches its own functions; `answer` is that of its breakpoints."""
    made = SimpleNamespace(pc=0, answer=HANDLED, reached=[], isa=SimpleNamespace(unicorn=SimpleNamespace()))
    made.isa.unicorn.undefined = UNDEFINED

    def breakpoint_(address):
        made.reached.append(("breakpoint", address))
        return made.answer

    def trap(number):
        made.reached.append(("trap", number))
        return DELIVER

    made.handlers = SimpleNamespace(taker=SimpleNamespace(breakpoint=breakpoint_, trap=trap))
    made.discount = lambda instructions, _carried_out: made.reached.append(("discount", instructions))
    return made


def test_a_lock_that_is_left_to_the_guest_is_one_exception(engine):
    observer = Observer(engine)
    engine.answer, engine.pc = DELIVER, 0x10
    assert engine.handlers.taker.breakpoint(0x10) == DELIVER
    assert engine.handlers.taker.trap(UNDEFINED) == DELIVER
    assert (observer.exceptions, observer.breakpoints) == (1, 1)
    assert engine.reached == [("breakpoint", 0x10), ("trap", UNDEFINED)]


def test_a_lock_that_comes_as_an_undefined_instruction_alone_is_a_breakpoint(engine):
    observer = Observer(engine)
    engine.handlers.taker.breakpoint(0x10)  # int3, which is handled
    engine.pc = 0x10
    engine.handlers.taker.trap(UNDEFINED)
    assert (observer.exceptions, observer.breakpoints) == (2, 2)


def test_another_exception_is_not_a_breakpoint_and_the_next_lock_counts(engine):
    observer = Observer(engine)
    engine.answer, engine.pc = DELIVER, 0x10
    engine.handlers.taker.breakpoint(0x10)
    engine.handlers.taker.trap(PAGE_FAULT)
    engine.handlers.taker.trap(UNDEFINED)
    assert (observer.exceptions, observer.breakpoints) == (3, 2)


def test_instructions_that_are_left_out_are_summed_and_left_out(engine):
    observer = Observer(engine)
    for number in (3, 4):
        engine.discount(number)
    assert observer.discounted == 7
    assert engine.reached == [("discount", 3), ("discount", 4)]
