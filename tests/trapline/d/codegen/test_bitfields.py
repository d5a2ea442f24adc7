"""Bit-fields: what is stored in one is read from it, and the fields around it stay as they are."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trapline.d.reference.scene import run_scene

BASES = {"char": 8, "short": 16, "int": 32, "long": 64}


@st.composite
def fields(draw):
    """Fields as (declaration, width, signed, value), the value wider than the field at times."""
    found = []
    for _ in range(draw(st.integers(1, 7))):
        base = draw(st.sampled_from(list(BASES)))
        width = draw(st.integers(1, BASES[base]))
        signed = draw(st.booleans())
        value = draw(st.integers(0, (1 << min(width + 2, 62)) - 1))
        found.append((f"{'' if signed else 'unsigned '}{base}", width, signed, value))
    return found


def held(width, value, *, signed):
    """Return what a field of a width holds of a value."""
    value &= (1 << width) - 1
    return value - (1 << width) if signed and value >> width - 1 else value


@settings(max_examples=40, deadline=None)
@given(fields(), st.randoms(use_true_random=False))
def test_fields_hold_what_is_stored_whatever_the_order(drawn, random):
    declared = " ".join(f"{base} f{i} : {width};" for i, (base, width, _signed, _value) in enumerate(drawn))
    order = list(range(len(drawn)))
    random.shuffle(order)
    stores = " ".join(f"v.f{i} = {drawn[i][3]}ll;" for i in order)
    shows = " ".join(f'printf("%d\\n", (int64_t)v.f{i});' for i in range(len(drawn)))
    program = f"struct s {{ {declared} }}; struct s v; BEGIN {{ {stores} {shows} exit(0); }}"
    stdout, stderr, status = run_scene(["-q", "-n", program])
    assert (stderr, status) == ("", 0)
    expected = [held(width, value, signed=signed) for _base, width, signed, value in drawn]
    assert [int(word) for word in stdout.split()] == expected


@settings(max_examples=40, deadline=None)
@given(fields())
def test_a_struct_copied_shows_its_fields_as_they_were(drawn):
    """print() reads the fields by itself, without the compiler's instructions."""
    declared = " ".join(f"{base} f{i} : {width};" for i, (base, width, _signed, _value) in enumerate(drawn))
    stores = " ".join(f"v.f{i} = {value}ll;" for i, (_base, _width, _signed, value) in enumerate(drawn))
    program = f"struct s {{ {declared} }}; struct s v; struct s w; BEGIN {{ {stores} w = v; print(w); exit(0); }}"
    stdout, _stderr, status = run_scene(["-q", "-n", program])
    assert status == 0
    for i, (_base, width, _signed, value) in enumerate(drawn):
        bits = value & (1 << width) - 1
        assert f"f{i} :{width} = {f'{bits:#x}' if bits else '0'}\n" in stdout
