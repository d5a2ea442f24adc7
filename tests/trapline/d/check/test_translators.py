"""Translators, provider blocks, and where a line comes from."""

import pytest

from tests.trapline.d.support import Calculator, compile_text
from trapline.d.compiler import Globals
from trapline.d.errors import CompileError
from trapline.d.types.rules import same

INFO = """
struct info { int id; unsigned char small; char name[16]; string text; uint64_t big; int low:3; int high:5; };
translator struct info < int64_t X > {
    id = X + 1; small = 300; name = "lion"; text = strjoin("a", "b"); big = X * 3; high = 9;
};
inline struct info *me = xlate <struct info *> (41);
"""


def values(program, *expressions):
    """Return the integers that expressions have in BEGIN."""
    calculator = Calculator()
    traced = "; ".join(f"trace((int64_t)({expression}))" for expression in expressions)
    device = calculator.run(f"{INFO} BEGIN {{ {program} {traced} }}")
    data = device.buffer_snapshot(0).data[16:]
    return [int.from_bytes(data[8 * n : 8 * n + 8], "little", signed=True) for n in range(len(expressions))]


def test_a_member_is_the_expression_over_the_input_in_the_members_type():
    assert values("", "me->id", "me->small", "me->big", "me->high", "strlen(me->name)", "strlen(me->text)") == [
        42, 300 & 255, 123, 9, 4, 2,
    ]  # fmt: skip


def test_the_operand_is_computed_once_whatever_the_member_does_with_it():
    assert values("x = 5;", "xlate <struct info> (x++).big", "x") == [15, 6]


def test_a_whole_translation_fills_the_members_that_are_defined_and_zeroes_the_rest():
    shown = ("this->i.id", "this->i.small", "this->i.big", "this->i.high", "this->i.low", "strlen(this->i.text)")
    assert values("this->i = xlate <struct info> (7);", *shown) == [8, 44, 21, 9, 0, 2]


def test_a_translator_may_use_another():
    calculator = Calculator()
    outer = "struct outer { int a; }; translator struct outer < int X > { a = xlate <struct info> (X * 2).id + X; };"
    device = calculator.run(f"{INFO} {outer} BEGIN {{ trace((int64_t)xlate <struct outer *> (4)->a) }}")
    assert int.from_bytes(device.buffer_snapshot(0).data[16:24], "little") == 9 + 4


@pytest.mark.parametrize("text", ["me", "me + 1", "xlate <struct info *> (1)"])
def test_a_translation_is_not_a_value(text):
    with pytest.raises(CompileError):
        compile_text(f"{INFO} BEGIN {{ trace({text}) }}")


def test_probes_of_a_provider_block_have_hyphens_and_mapped_arguments():
    names = Globals()
    compile_text(
        INFO
        + "provider web { probe request__start(int64_t a, char *b) : (char *b, struct info *a); probe idle(void); };",
        names=names,
    )
    start = names.providers["web"]["request-start"]
    assert start.mapping == (1, 0)
    assert [str(one) for one in start.native] == ["int64_t", "char *"]
    assert names.providers["web"]["idle"].native == ()


def test_an_error_is_reported_by_the_line_that_control_lines_give():
    with pytest.raises(CompileError) as caught:
        compile_text('BEGIN { }\n#line 100 "inc.h"\n\nBEGIN { trace(nosuch) }')
    assert str(caught.value).startswith('[D_IDENT_UNDEF] "inc.h", line 101: ')


def test_a_translator_is_not_compared_with_all_others(monkeypatch):
    compared = []

    def counting(left, right):
        compared.append((left, right))
        return same(left, right)

    monkeypatch.setattr("trapline.d.check.scopes.same", counting)
    inputs = "".join(
        f"struct in{n} {{ int id; }}; translator struct info < struct in{n} *I > {{ id = I->id; }};" for n in range(100)
    )
    compile_text(f"{INFO} {inputs} BEGIN {{ trace(xlate <struct info *> ((struct in7 *)8)->id) }}")
    assert len(compared) < 10
