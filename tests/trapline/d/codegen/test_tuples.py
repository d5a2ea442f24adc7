"""How long a tuple may be: as long as the registers last, as with libdtrace.

dt_cg_arglist() (FreeBSD libdtrace dt_cg.c) holds a register for every key until all of them are
computed, since a key may itself use the tuple stack; of the eight registers %r0 holds nothing.  So
seven keys can be read, six be assigned to: the value is held meanwhile.  One register less is left where
a key is cut to its type (dt_cg_typecast()), as an int is.
"""

from __future__ import annotations

import pytest

from tests.trapline.d.support import tag_of


def keys(count, kind):
    return ", ".join(f'"{number}"' if kind == "string" else str(number) for number in range(count))


@pytest.mark.parametrize(("kind", "most"), [("int", 6), ("string", 7)])
def test_an_element_is_read_by_as_many_keys_as_there_are_registers(kind, most):
    for count in range(1, most + 1):
        declared = f"int x[{', '.join([kind] * count)}];"
        assert tag_of(f"{declared} BEGIN {{ trace(x[{keys(count, kind)}]); }}") == ""
    declared = f"int x[{', '.join([kind] * (most + 1))}];"
    assert tag_of(f"{declared} BEGIN {{ trace(x[{keys(most + 1, kind)}]); }}") == "D_NOREG"


@pytest.mark.parametrize(("kind", "most"), [("int", 5), ("string", 6)])
def test_the_value_that_is_assigned_takes_a_register_too(kind, most):
    assert tag_of(f"BEGIN {{ x[{keys(most, kind)}] = 1; }}") == ""
    assert tag_of(f"BEGIN {{ self->x[{keys(most + 1, kind)}] = 1; }}") == "D_NOREG"


def test_a_tuple_never_has_more_than_the_tuple_registers():
    declared = f"int x[{', '.join(['int'] * 9)}];"
    assert tag_of(f"{declared} BEGIN {{ trace(x[{keys(9, 'int')}]); }}") == "D_NOREG"


def test_the_keys_of_an_aggregation_are_recorded_one_by_one_and_need_no_tuple():
    assert tag_of(f"BEGIN {{ @[{keys(20, 'int')}, {keys(20, 'string')}] = count(); }}") == ""
