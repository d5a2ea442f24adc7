"""The two data models: what long and pointers decide, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.some import some
from tests.trapline.d.reference.scene import run_scene
from tests.trapline.d.support import compile_text
from trapline.d.check.scopes import Globals
from trapline.d.types.data_models import ILP32, LP64, MODELS
from trapline.dof import decode, encode
from trapline.framework.base.program import DataModel

LAYOUT = "struct s { char a; long b; char c; void *d; short e; long long f; } v;"


def traced(flag, program, declarations=""):
    """Run a program's BEGIN in a data model; return the numbers it traced."""
    text = f"{declarations} BEGIN {{ {program} exit(0); }}"
    stdout, stderr, status = run_scene(["-q", flag, "-x", "errtags", "-n", text])
    assert (stderr, status) == ("", 0)
    return [int(word) for word in stdout.split()]


def shown(*expressions):
    return "".join(f'printf("%d\\n", {expression});' for expression in expressions)


@pytest.mark.parametrize(("flag", "bytes_", "ids"), [("-64", 8, 4), ("-32", 4, 4)])
def test_long_and_pointers_have_the_width_of_the_model(flag, bytes_, ids):
    words = ("long", "unsigned long", "void *", "size_t", "ssize_t", "ptrdiff_t", "uintptr_t", "intptr_t", "ulong_t")
    assert traced(flag, shown(*(f"sizeof ({word})" for word in words))) == [bytes_] * len(words)
    fixed = ("char", "short", "int", "float", "pid_t", "long long", "double", "int64_t", "uint64_t", "u_longlong_t")
    assert traced(flag, shown(*(f"sizeof ({word})" for word in fixed))) == [1, 2, 4, 4, ids, 8, 8, 8, 8, 8]


@pytest.mark.parametrize(("flag", "offsets"), [("-64", [8, 16, 24, 32, 40, 48]), ("-32", [4, 8, 12, 16, 24, 32])])
def test_structs_are_laid_out_for_the_model(flag, offsets):
    members = [f"offsetof(struct s, {name})" for name in "bcdef"]
    assert traced(flag, shown(*members, "sizeof (v)"), LAYOUT) == offsets


@settings(max_examples=30, deadline=None)
@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_what_is_stored_is_cut_to_the_models_width(value):
    wanted = {"-64": value, "-32": (value + (1 << 31)) % (1 << 32) - (1 << 31)}
    for flag, cut in wanted.items():
        text = f"({value + 1}ll - 1)" if value < 0 else f"{value}ll"
        assert traced(flag, f'x = {text}; printf("%d", x);', "long x;") == [cut]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, (1 << 64) - 1), st.sampled_from(["%d", "%#x"]), st.sampled_from(["", "u", "l", "ul", "ll", "ull"])
)
def test_a_literal_has_the_first_type_that_holds_it(value, form, suffix):
    """As C has it: the types in order of rank, signed ones only if the literal is decimal and has no u."""
    for model in some(MODELS.values()):
        ranks = [(4, "int"), (model.pointer, "long"), (8, "long long")][suffix.count("l") :]
        signs = ["unsigned "] if "u" in suffix else [""] if form == "%d" else ["", "unsigned "]
        fits = [f"{sign}{name}" for size, name in ranks for sign in signs if value < 1 << (8 * size - (not sign))]
        text = f"BEGIN {{ print({form % value}{suffix}) }}"
        names = Globals(model)
        if not fits:
            with pytest.raises(Exception, match="does not fit"):
                compile_text(text, names=names)
            continue
        compile_text(text, names=names)
        assert [*names.printed] == [fits[0]]


@pytest.mark.parametrize("model", list(DataModel))
def test_dof_says_which_model_it_is_for(model):
    program = compile_text("BEGIN { trace(1); }", names=Globals(MODELS[model]))
    assert program.model is model
    dof = encode(program)
    assert dof[4] == model
    assert decode(dof).ecbs


def test_typedefs_differ_only_where_they_must():
    same = {name for name in LP64.typedefs if LP64.typedefs[name] == ILP32.typedefs[name]}
    assert same == {
        "int8_t", "int16_t", "int32_t", "uint8_t", "uint16_t", "uint32_t",
        "uchar_t", "ushort_t", "uint_t", "u_longlong_t",
    }  # fmt: skip


def test_a_kernel_of_the_other_model_has_no_symbols_and_no_types():
    for program, tag in (
        ("trace(`ticks);", "D_SYM_MODEL"),
        ("trace(curthread->td_tid);", "D_OP_SOU"),
        ("trace(sizeof (struct proc));", "D_SIZEOF_TYPE"),
        ("trace(curpsinfo->pr_pid);", "D_IDENT_UNDEF"),
    ):
        _stdout, stderr, status = run_scene(["-32", "-x", "errtags", "-n", f"BEGIN {{ {program} }}"])
        assert status == 1
        assert f"[{tag}]" in stderr


def test_arguments_of_subroutines_are_cut_to_the_models_width():
    assert traced("-64", "x = 0x100000005ll; " + shown("strlen(stringof(copyin(0x405000, x - 0x100000000ll)))")) == [5]
    assert traced("-32", "x = 0x100000005ll; " + shown("strlen(stringof(copyin(0x405000, x)))")) == [5]
