"""Options of `trapline check` that would have no effect are errors, not silence."""

import click
import pytest
from click.testing import CliRunner

from tests.support.some import some
from trapline.commands.check import MODES, check_command
from trapline.commands.shared import OutputFile

# The word on the command line, by what takes values.
_VALUES = {
    click.types.BoolParamType: [],
    click.types.IntRange: ["1"],
    click.types.Choice: None,
    click.types.StringParamType: ["anything"],
    OutputFile: ["anything"],
}


def _given(name):
    """Return an argument of the command, as words."""
    parameter = next(one for one in check_command.params if one.name == name)
    if isinstance(parameter, click.Argument):
        return ["anything"] * (2 if name == "arguments" else 1)
    if isinstance(parameter.type, click.types.Path):
        return [parameter.opts[0], "." if parameter.type.dir_okay else "anything"]
    values = _VALUES[type(parameter.type)]
    return [parameter.opts[0], *([parameter.type.choices[0]] if values is None else values)]


def _words(mode):
    """Return a command line of a mode."""
    return _given(mode) if mode else ["testbins:kernel"]


def _idle():
    """Yield a mode and a parameter without effect in it, which selects no mode that comes first."""
    known, order = frozenset().union(*MODES.values()), [*MODES]
    for mode in MODES:
        for name in sorted(known - MODES[mode]):
            if name not in MODES or order.index(name) > order.index(mode):
                yield mode, name


def test_a_parameter_without_effect_is_refused():
    for mode, name in some(_idle()):
        result = CliRunner().invoke(check_command, [*_words(mode), *_given(name)])
        assert result.exit_code == 2
        assert " has no effect with" in result.output, (mode, name)


def test_every_parameter_is_in_the_table():
    known = frozenset().union(*MODES.values())
    assert {one.name for one in check_command.params} == known


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--museum", "list", "testbins:zoo"], "PROGRAM has no effect with --museum"),
        (["--museum", "list", "--states", "3"], "--states has no effect with --museum"),
        (["--encodings", "riscv64", "testbins:zoo"], "PROGRAM has no effect with --encodings"),
        (["--encodings", "riscv64", "--isa", "riscv64"], "--isa has no effect with --encodings"),
        (["--object", "a.o", "--engine", "python"], "--engine has no effect with --object"),
        (["testbins:zoo", "--sample", "3"], "--sample has no effect without --object or --encodings"),
        (["testbins:zoo", "--glue", "fbt"], "--glue has no effect without --object"),
        (["--asm", "nop", "--no-run"], "--run has no effect with --asm"),
    ],
)
def test_the_message_names_the_parameter_and_the_mode(words, message):
    result = CliRunner().invoke(check_command, words)
    assert result.exit_code == 2
    assert message in result.output
