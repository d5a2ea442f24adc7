"""Types from their names, as providers and records give them: `struct proc *`."""

from __future__ import annotations

from trapline.d import ast
from trapline.d.errors import CompileError
from trapline.d.expressions import Expressions
from trapline.d.lexer import Lexer
from trapline.d.macros import Macros
from trapline.d.parser import literals, parse_items
from trapline.d.scopes import Globals
from trapline.d.types import Type


def _refuse(text: str, line: int) -> None:
    """Refuse a control line: a type has none."""
    raise CompileError("D_SYNTAX", f"#{text} in a type", line)


def type_of_text(text: str, names: Globals) -> Type:
    """Return the type of a name.  Raises `CompileError`."""
    macros = Macros((), {}, missing_allowed=False)
    lexer = Lexer(f"BEGIN {{ sizeof ({text}) }}", names, _refuse, macros, literals(), pspec=True)
    match list(parse_items(lexer)):
        case [ast.Clause(body=[ast.SizeOfType(type=named)])]:
            return Expressions(names).declarations.type_name(named)
    raise CompileError("D_SYNTAX", f"'{text}' is not a type", 1)
