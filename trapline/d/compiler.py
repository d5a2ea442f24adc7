"""D programs to enablings: the entry of the compiler.

Text is read item by item (lexer, parser); declarations take effect as they are read, clauses are
compiled when all has been read, each once for every probe description it has.

Source: FreeBSD libdtrace dt_cc.c (dtrace_program_compile()).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from emu.immutable import immutable
from providers.base import minimum
from trapline.d import ast
from trapline.d.arguments import ProbeArguments
from trapline.d.branches import branch_free
from trapline.d.builtins import vocabulary
from trapline.d.descriptions import Form, parse_description, why_none
from trapline.d.errors import CompileError, Place, Region
from trapline.d.expressions import Expressions
from trapline.d.lexer import Lexer
from trapline.d.macros import Macros
from trapline.d.parser import literals, parse_items
from trapline.d.pragmas import Pragmas
from trapline.d.providers import Providers
from trapline.d.scopes import KERNEL, KERNEL_MODULES, Globals
from trapline.d.stability import description_attribute, least, parse_attribute, shown
from trapline.d.statements import Statements
from trapline.d.trees import DEPTH_MAX, check_depth, names_in
from trapline.d.type_rules import is_scalar
from trapline.d.types import Type, type_name
from trapline.d.typetext import type_of_text
from trapline.d.unparse import unparse
from trapline.framework.dif import INTEGER_REGISTERS
from trapline.framework.dynvars import STRING_SIZE
from trapline.framework.program import STABLE, ActionDescription, Difo, EcbDescription, ProbeDescription, Program

if TYPE_CHECKING:
    from providers.base import ArgumentDescription, Attribute
    from trapline.framework.device import ProbeInfo
    from trapline.options import Options

__all__ = ["CompileContext", "CompileError", "Form", "Globals", "compile_program"]

_CALLS_PER_LEVEL: Final = 20
# Errors of an action list whose cause may be that the predicate, which defines the name, was not yet checked.
_RETRIED: Final = frozenset({"D_IDENT_UNDEF", "D_VAR_UNDEF"})


@immutable
class CompileContext:
    """The context in which a program is compiled."""

    options: Options
    """Compile-time options in force; pragmas of the program are added."""
    probes: Callable[[ProbeDescription], Sequence[ProbeInfo]] = lambda _description: ()
    """`Device.probes`."""
    arguments: tuple[str, ...] = ("dtrace",)
    """$0, $1, $2 ..."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """Macro variables that are numbers: pid, target ..."""
    form: Form = Form.SCRIPT
    names: Globals = field(default_factory=Globals)
    """The names that the programs of one consumer share: variables, aggregations, types."""
    provide: Callable[[ProbeDescription], ProbeDescription] = lambda description: description
    """Makes the probes of processes that a description names; returns it with the names of the
    probes.

    Raises `CompileError`.
    """
    why_none: Callable[[ProbeDescription], str] = lambda _description: ""
    """`Device.why_none`."""
    argument: Callable[[int, int], ArgumentDescription | None] = lambda _probe, _index: None
    """`Device.probe_argument`."""
    show: Callable[[str], object] = lambda _text: None
    """Takes the text of option tree: the syntax tree of the program."""
    exists: Callable[[str, str], bool] = lambda _kind, _name: True
    """Returns whether there is a module or a provider of a name."""
    prepare: Callable[[str], object] = lambda _text: None
    """Is called with the types of arguments before they are looked up; it compiles the libraries
    that define them."""
    target: bool = False
    """Whether there is a process of -p or -c."""
    library: bool = False
    """Whether it is a D library, whose dependencies were checked before."""
    first: Callable[[ProbeDescription], ProbeInfo | None] | None = None
    """`Device.first`; None: the first of `probes`."""

    def first_probe(self, description: ProbeDescription) -> ProbeInfo | None:
        """Return the first probe that matches a description; None: there is none."""
        return next(iter(self.probes(description)), None) if self.first is None else self.first(description)


def compile_program(text: str, context: CompileContext) -> Program:
    """Compile a program.  Raises `CompileError`."""
    compiler = _Compiler(text, context)
    try:
        with _deep_recursion():
            return compiler.compile()
    except CompileError as error:
        if context.form is Form.SCRIPT:
            error.place = error.place or compiler.place(error.line or compiler.line)
        else:
            error.region = error.region or compiler.region
        raise
    except RecursionError:
        # Each item is within the limit, but inlines or typedefs refer to one another through too many levels.
        deep = CompileError("D_SYNTAX", "inlines or types refer to each other through too many levels")
        deep.place = compiler.place(compiler.line) if context.form is Form.SCRIPT else None
        raise deep from None


@contextmanager
def _deep_recursion() -> Iterator[None]:
    """Let the passes recurse as deep as a program may be nested, with some calls per level."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _CALLS_PER_LEVEL * DEPTH_MAX))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class _Compiler:
    def __init__(self, text: str, context: CompileContext) -> None:
        self._context = context
        self._names = context.names
        self._options = context.options
        self._macros = Macros(context.arguments, context.numbers, missing_allowed=self._options.is_set("defaultargs"))
        exists = None if context.library else context.exists
        self._pragmas = Pragmas(self._options, self._option_set, self._names, context.arguments[0], exists)
        self._lexer = Lexer(
            text, self._names, self._pragmas.control, self._macros, literals(), pspec=context.form is not Form.SCRIPT
        )
        self._strsize = self._options.number("strsize", STRING_SIZE)
        self._expressions = Expressions(self._names, self._strsize)
        self._providers = Providers(self._names, self._expressions.declarations, self._expressions.translators)
        self._clauses: list[ast.Clause] = []
        self._statement = 0
        self._stability = STABLE
        self.region: Region | None = None

    def _option_set(self, name: str) -> None:
        if name == "defaultargs":
            self._macros.allow_missing()
        elif name == "version":
            version = tuple(map(int, self._options.text("version").split(".")))
            self._names.words = vocabulary(self._names.model.model, version)
        elif name == "strsize":
            self._strsize = self._expressions.strsize = self._options.number("strsize", STRING_SIZE)

    def place(self, line: int) -> Place:
        """Return where a line of the text comes from."""
        return self._pragmas.place(line)

    @property
    def line(self) -> int:
        """Line of the text that was read last."""
        return self._lexer.line

    def compile(self) -> Program:
        """Read everything, then compile the clauses."""
        items = 0
        for item in parse_items(self._lexer):
            items += 1
            check_depth(item)
            if self._options.is_set("tree"):
                self._context.show(unparse(item))
            self._item(item)
        if not items and not self._options.is_set("empty"):
            raise CompileError("D_EMPTY", "the program is empty: it has no clause and no declaration")
        ecbs = [ecb for clause in self._clauses for ecb in self._clause(clause)]
        self._pragmas.check_used()
        if not self._options.is_set("argref"):
            self._macros.check_used()
        return Program(
            tuple(ecbs),
            tuple(self._pragmas.options),
            tuple(self._names.aggregations),
            self._stability,
            self._names.model.model,
        )

    def _item(self, item: ast.Item) -> None:
        match item:
            case ast.Clause():
                self._check_form(item)
                self._clauses.append(item)
            case ast.Declaration():
                self._expressions.declarations.declare(item)
            case ast.Inline():
                self._expressions.inlines.define(item)
            case ast.Translator():
                self._expressions.translators.define(item)
                self._pragmas.translator_defined(item.line)
            case ast.Provider():
                self._providers.define(item)

    def _check_form(self, clause: ast.Clause) -> None:
        if clause.body is not None:
            return
        if clause.predicate is not None:
            raise CompileError("D_SYNTAX", "a predicate needs an action in braces after it: { }", clause.line)
        if self._context.form is not Form.SCRIPT:
            return
        raise CompileError("D_SYNTAX", "expected predicate and/or actions following probe description", clause.line)

    # Clauses

    def _clause(self, clause: ast.Clause) -> list[EcbDescription]:
        ecbs = []
        parts = branch_free(clause)
        names = names_in(replace(clause, probes=()))
        for probe in clause.probes:
            description = self._described(probe)
            self._stability = minimum(self._stability, self._stability_of(names, description, clause.line))
            self._expressions.elements.arguments = ProbeArguments(
                description, self._context.probes, self._context.argument, self._argument_type
            )
            for part in parts:
                actions, predicate = self._parts(part)
                ecbs.append(EcbDescription(description, predicate, actions))
            self._expressions.elements.arguments = None
        return ecbs

    def _argument_type(self, text: str) -> Type:
        self._context.prepare(text)
        return type_of_text(text, self._names)

    def _stability_of(self, names: frozenset[str], description: ProbeDescription, line: int) -> Attribute:
        """Return the stability of a clause.

        Raises `CompileError` D_ATTR_MIN if it is below option amin.
        """
        found = least(names, partial(self._argument_attributes, description), self._names.attributes)
        wanted = parse_attribute(self._options.text("amin")) if self._options.text("amin") else None
        if wanted is not None:
            described = description_attribute(self._context.first_probe(description), description)
            # The description comes first, as in dt_cook_clause().
            low = next((one for one in (described, found) if minimum(one, wanted) != wanted), None)
            if low is not None:
                message = f"attributes {shown(low)} are less than the minimum {shown(wanted)}"
                raise CompileError("D_ATTR_MIN", message, line)
        return found

    def _argument_attributes(self, description: ProbeDescription) -> Attribute:
        """Return the stability of the arguments of the probes that a description matches."""
        probe = self._context.first_probe(description)
        return STABLE if probe is None else probe.attributes.args

    def _described(self, probe: ast.ProbeText) -> ProbeDescription:
        description = parse_description(probe.text, self._context.form, probe.line)
        if description.module in KERNEL_MODULES:
            description = replace(description, module=KERNEL)
        description = self._context.provide(description)
        if (self._options.is_set("zdefs") and not description.id) or self._context.first_probe(description):
            return description
        if description.id:
            raise CompileError("D_PDESC_INVAL", f"invalid probe identifier {description.id}", probe.line)
        # The search for a similar name makes requests of its own, which verbose_ioctl should not show.
        hint = ""
        if not self._options.is_set("verbose_ioctl"):
            hint = why_none(description, self._context.why_none, self._context.probes)
        message = f"probe description {description} does not match any probes{hint}"
        raise CompileError("D_PDESC_ZERO", message, probe.line)

    def _parts(self, clause: ast.Clause) -> tuple[tuple[ActionDescription, ...], Difo | None]:
        """Compile the actions, then the predicate."""
        self._expressions.forget()
        self._check(clause)
        actions = self._actions(clause)
        return actions, None if clause.predicate is None else self._predicate(clause.predicate)

    def _check(self, clause: ast.Clause) -> None:
        """Check a clause: first its actions, unless the predicate defines a name they use."""
        try:
            self._check_actions(clause)
        except CompileError as error:
            if clause.predicate is None or error.tag not in _RETRIED:
                raise
            self._check_predicate(clause.predicate)
            self._check_actions(clause)
        if clause.predicate is not None:
            self._check_predicate(clause.predicate)

    def _check_actions(self, clause: ast.Clause) -> None:
        self.region = Region.ACTIONS
        self._statements().check(clause.body or ())
        self.region = None

    def _check_predicate(self, node: ast.Expression) -> None:
        self.region = Region.PREDICATE
        checked = self._expressions.check(node)
        if not is_scalar(checked.type):
            raise CompileError("D_PRED_SCALAR", f"the predicate is {type_name(checked.type)}, not a scalar", node.line)
        self.region = None

    def _statements(self) -> Statements:
        registers = self._options.number("iregs", INTEGER_REGISTERS)
        return Statements(
            self._expressions, self._names, registers=registers, strsize=self._strsize, target=self._context.target
        )

    def _actions(self, clause: ast.Clause) -> tuple[ActionDescription, ...]:
        self.region = Region.ACTIONS
        found: list[ActionDescription] = []
        for actions in self._statements().compile(clause.body or ()):
            self._statement += 1
            found += [replace(action, statement=self._statement) for action in actions]
        self.region = None
        return tuple(found)

    def _predicate(self, node: ast.Expression) -> Difo:
        self.region = Region.PREDICATE
        difo = self._statements().values.difo(self._expressions.check(node))
        self.region = None
        return difo
