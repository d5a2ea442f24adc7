"""The parameters of `trapline check` that have an effect in each of its modes.

An option selects the mode; without one, PROGRAM is checked.  A parameter that has no effect in the
mode is an error, not silence.
"""

from __future__ import annotations

from typing import Final

import click
from click.core import ParameterSource

# The mode that no option selects: PROGRAM is checked.
_PROGRAM: Final = ""
_REPORTED: Final = frozenset({"reports", "kept", "jobs", "dask", "rules", "provider"})
_TRIED: Final = frozenset({"isa", "function", "states", "fidelity", "syntax"})
_FILES: Final = frozenset({"program", "root", "debug_root"})
# The option that selects a mode, by its name in Python, and the names of the parameters that have an effect in the
# mode.  If several are given, the first of them counts.
MODES: Final = {
    "museum": frozenset({"museum", "syntax", "html", "tui"}),
    "objects": _TRIED
    | _FILES
    | {"objects", "glue", "sample", "first", "fuzz", "memory", "reports", "sweep", "bound", "given", "kept"},
    "encodings": _REPORTED | {"encodings", "sample"},
    "asm": _REPORTED | _TRIED | {"asm", "engine"},
    _PROGRAM: _REPORTED | _TRIED | _FILES | {"arguments", "every_instruction", "run", "engine"},
}


def refuse_idle(context: click.Context) -> None:
    """Raise `click.UsageError` if the command line gives a parameter that has no effect."""
    parameters = {one.name or "": one for one in context.command.params}
    given = {name for name in parameters if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    mode = next((mode for mode in MODES if mode in given), _PROGRAM)
    known = frozenset[str]().union(*MODES.values())
    for name, parameter in parameters.items():
        if name not in given & known - MODES[mode]:
            continue
        if mode:
            why = f"with {parameters[mode].opts[0]}"
        else:
            why = "without " + " or ".join(parameters[one].opts[0] for one in MODES if name in MODES[one])
        raise click.UsageError(f"{_written(parameter)} has no effect {why}")


def _written(parameter: click.Parameter) -> str:
    """Return a parameter as the help writes it."""
    return parameter.opts[0] if isinstance(parameter, click.Option) else (parameter.name or "").upper()
