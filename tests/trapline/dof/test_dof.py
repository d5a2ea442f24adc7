"""DOF: decoding returns the encoded program, and damaged data are refused."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.dof.layout import HEADER, MAX_SIZE, SECTION, SectionType
from tests.trapline.d.support import compile_text
from trapline.dof import DofError, decode, encode
from trapline.dof.layout import OPTIONS
from trapline.framework.base.program import (
    ActionDescription,
    ActionKind,
    Difo,
    DifType,
    DifVariable,
    EcbDescription,
    ProbeDescription,
    Program,
    Scope,
    TypeKind,
    VariableKind,
)

U8, U16, U32, U64 = (st.integers(0, (1 << bits) - 1) for bits in (8, 16, 32, 64))
TEXT = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=12)
TYPES = st.builds(DifType, st.just(TypeKind.CTF), U8, U8, U32)
NAMES = st.lists(TEXT, max_size=4)


@st.composite
def difos(draw):
    names = draw(NAMES)
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in names if name)
    variables = [
        DifVariable(
            name, draw(U32), draw(st.sampled_from(VariableKind)), draw(st.sampled_from(Scope)), draw(U16), draw(TYPES)
        )
        for name in names
    ]
    returns = draw(TYPES | st.builds(DifType, st.just(TypeKind.STRING), U8, U8, U32))
    code = tuple(draw(st.lists(U32, max_size=6)))
    return Difo(code, tuple(draw(st.lists(U64, max_size=3))), strings, tuple(variables), returns)


@st.composite
def actions(draw):
    text = draw(TEXT)
    argument = 0 if text else draw(U64)
    difo = draw(st.none() | difos())
    kind = draw(st.sampled_from(ActionKind))
    return ActionDescription(kind, difo, argument, text, draw(U32), draw(U64))


PROBES = st.builds(ProbeDescription, TEXT, TEXT, TEXT, TEXT, U32)
ECBS = st.builds(EcbDescription, PROBES, st.none() | difos(), st.lists(actions(), max_size=3).map(tuple))
PROGRAMS = st.builds(Program, st.lists(ECBS, max_size=3).map(tuple))
CHOSEN = st.dictionaries(st.sampled_from(OPTIONS), st.integers(-1, 1 << 40), max_size=3)


@given(PROGRAMS, CHOSEN)
def test_what_is_encoded_is_decoded(program, options):
    decoded = decode(encode(program, options))
    assert decoded.ecbs == program.ecbs
    assert dict(decoded.options) == options


@pytest.mark.parametrize(
    "text",
    [
        "BEGIN { trace(1) }",
        'f:entry /arg0 > 3/ { self->x = timestamp; @a[execname, stack()] = quantize(arg1); printf("%s", execname) }',
        'BEGIN { x["a", 1] = 2; this->s = strjoin("a", "b"); freopen("/x"); system("%d", 1); exit(0) }',
        'f:entry { @b = lquantize(arg0, 0, 10, 1); tracemem(arg0, 8); ustack(3, 4); print(arg0); setopt("quiet") }',
        "f:entry { @b[pid] = count(); printa(@b); normalize(@b, 3); clear(@b); trunc(@b, 1) }",
    ],
)
def test_a_compiled_program_survives(text):
    program = compile_text(text)
    assert decode(encode(program)).ecbs == program.ecbs


def test_the_header_is_that_of_the_format():
    data = encode(compile_text("BEGIN { trace(1) }"))
    assert data[:16] == b"\x7fDOF" + bytes((2, 1, 2, 2, 8, 8)) + bytes(6)
    ident, flags, hdrsize, secsize, secnum, secoff, loadsz, filesz, pad = HEADER.unpack_from(data)
    assert (flags, hdrsize, secsize, secoff, pad) == (0, 64, 32, 64, 0)
    assert secnum >= 7
    assert loadsz <= filesz == len(data)
    del ident


SAMPLE = encode(
    compile_text('int y; f:entry /arg0/ { x = execname; y = 3; trace(strjoin(x, "tail")); printf("%d", 1 << 40) }'),
    {"bufsize": 4096},
)


@given(st.data())
def test_damage_is_refused_or_harmless(data):
    damaged = bytearray(SAMPLE)
    for _ in range(data.draw(st.integers(1, 5))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    del damaged[data.draw(st.integers(0, len(damaged))) :]
    with contextlib.suppress(DofError):
        decode(bytes(damaged))


@given(st.binary(max_size=200), st.booleans())
def test_rubbish_is_refused(data, header):
    with pytest.raises(DofError):
        decode(SAMPLE[:64] + data if header else data)


def patched(where, form, value):
    """Change one field of the sample."""
    data = bytearray(SAMPLE)
    struct.pack_into(form, data, where, value)
    return bytes(data)


def section(type_, field, value):
    """Change one field of the header of the first section of a type."""
    count = HEADER.unpack_from(SAMPLE)[4]
    for index in range(count):
        at = 64 + SECTION.size * index
        if SECTION.unpack_from(SAMPLE, at)[0] == type_:
            offset, form = {"align": (4, "<I"), "flags": (8, "<I"), "entry": (12, "<I"), "offset": (16, "<Q"),
                            "size": (24, "<Q"), "type": (0, "<I")}[field]  # fmt: skip
            return patched(at + offset, form, value)
    raise AssertionError(type_)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (SAMPLE[:40], "not whole"),
        (patched(0, "<I", 0), "magic"),
        (patched(4, "<B", 3), "data model"),
        (patched(5, "<B", 2), "encoding"),
        (patched(6, "<B", 3), "version"),
        (patched(7, "<B", 1), "instruction set"),
        (patched(8, "<B", 9), "integer registers"),
        (patched(9, "<B", 9), "tuple registers"),
        (patched(15, "<B", 1), "ident bytes"),
        (patched(16, "<I", 1), "flags"),
        (patched(24, "<I", 0), "section header size"),
        (patched(28, "<I", 1 << 20), "section headers"),
        (patched(32, "<Q", 65), "section headers"),
        (patched(40, "<Q", 1 << 40), "exceeds the maximum"),
        (patched(40, "<Q", len(SAMPLE) + 1), "load size"),
        (section(SectionType.DIF, "type", SectionType.PROVIDER), "cannot define"),
        (section(SectionType.DIF, "flags", 0), "but its flags say otherwise"),
        (section(SectionType.DIF, "align", 3), "alignment of 3"),
        (section(SectionType.DIF, "offset", 1), "not aligned"),
        (section(SectionType.DIF, "size", 1 << 30), "beyond"),
        (section(SectionType.STRTAB, "size", 2), "without a NUL"),
        (section(SectionType.ECBDESC, "size", 8), "ECB description"),
        (section(SectionType.PROBEDESC, "align", 8), "probe description"),
        (section(SectionType.ACTDESC, "entry", 8), "entry size of actions"),
        (section(SectionType.ACTDESC, "size", 40), "not whole"),
        (section(SectionType.DIFOHDR, "size", 8), "DIF object header"),
        (section(SectionType.DIF, "entry", 8), "of DIF"),
        (section(SectionType.VARTAB, "align", 1), "of VARTAB"),
        (section(SectionType.OPTDESC, "entry", 8), "options"),
        (section(SectionType.DIF, "type", SectionType.INTTAB), "two INTTABs|of INTTAB|without code"),
    ],
)
def test_each_check_has_its_message(data, message):
    with pytest.raises(DofError, match=message):
        decode(data)


def test_too_much_of_it_is_refused_as_too_big():
    with pytest.raises(DofError) as caught:
        decode(patched(40, "<Q", MAX_SIZE))
    assert caught.value.errno_name == "E2BIG"
