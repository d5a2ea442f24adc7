"""Types from their names, as providers and records give them: `struct proc *`."""

from __future__ import annotations

from emu.immutable import immutable
from trapline.d import ast
from trapline.d.data_models import Model
from trapline.d.errors import CompileError
from trapline.d.expressions import Expressions
from trapline.d.lexer import Lexer
from trapline.d.macros import Macros
from trapline.d.parser import literals, parse_items
from trapline.d.scopes import Globals
from trapline.d.types import Type


@immutable
class _Names:
    """The names that the lexer asks for."""

    names: Globals

    @property
    def model(self) -> Model:
        """The data model of the program."""
        return self.names.model

    def is_type(self, name: str) -> bool:
        """Return whether a name is that of a type."""
        return self.names.is_type(name)

    def is_defined(self, name: str) -> bool:
        """Return whether a name means anything else."""
        return self.names.is_defined(name)

    def is_complete(self, keyword: str, tag: str) -> bool:
        """Return whether a struct, union or enum has its members."""
        return self.names.is_complete(keyword, tag)

    def control(self, text: str, line: int) -> None:
        """Refuse: a type has no control lines."""
        raise CompileError("D_SYNTAX", f"#{text} in a type", line)


def type_of_text(text: str, names: Globals) -> Type:
    """Return the type of a name.  Raises `CompileError`."""
    macros = Macros((), {}, missing_allowed=False)
    lexer = Lexer(f"BEGIN {{ sizeof ({text}) }}", _Names(names), macros, literals(), pspec=True)
    match list(parse_items(lexer)):
        case [ast.Clause(body=[ast.SizeOfType(type=named)])]:
            return Expressions(names).declarations.type_name(named)
    raise CompileError("D_SYNTAX", f"'{text}' is not a type", 1)
