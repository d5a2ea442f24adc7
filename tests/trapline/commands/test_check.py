"""Options of `trapline check` that would have no effect are errors, not silence."""

import click
import pytest
from click.testing import CliRunner

from trapline.commands.check import _NOT_OF_OBJECTS, _OF_OBJECTS, check_command

# The word on the command line, by what takes values.
_VALUES = {
    click.types.BoolParamType: [],
    click.types.IntRange: ["1"],
    click.types.Choice: None,
    click.types.StringParamType: ["anything"],
    click.types.Path: ["anything"],
}


def _given(name):
    """Return an argument of the command, as words."""
    parameter = next(one for one in check_command.params if one.name == name)
    if isinstance(parameter, click.Argument):
        return ["anything"]
    values = _VALUES[type(parameter.type)]
    return [parameter.opts[0], *([parameter.type.choices[0]] if values is None else values)]


@pytest.mark.parametrize("name", sorted(_NOT_OF_OBJECTS))
def test_an_option_without_effect_on_objects_is_refused(name):
    words = ["testbins:kernel", "--object", "testbins:scanner.o", "--glue", "fbt", *_given(name)]
    result = CliRunner().invoke(check_command, words)
    assert result.exit_code == 2
    assert "has no effect with --object" in result.output


@pytest.mark.parametrize("name", sorted(_OF_OBJECTS))
def test_an_option_of_objects_without_one_is_refused(name):
    result = CliRunner().invoke(check_command, ["testbins:kernel", *_given(name)])
    assert result.exit_code == 2
    assert f"{_given(name)[0]} has no effect without --object" in result.output
