"""D programs to enablings: the passes of the compiler, in their order.

    text --parse--> syntax tree --types, check--> typed tree --codegen--> DIF

`_Compiler.compile` and `_Compiler._compile_clause` are the list of the passes.  Text is parsed item
by item; declarations take effect as they are read, clauses are compiled when all has been read,
each once for every probe description it has.

Source: FreeBSD libdtrace dt_cc.c (dtrace_program_compile(), dt_compile_one_clause()).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from emu.support.immutable import immutable
from providers.base import minimum
from trapline.d.check.clauses import check_clause
from trapline.d.check.expressions import Expressions
from trapline.d.check.pragmas import Pragmas
from trapline.d.check.probes import ProbeArguments, Providers
from trapline.d.check.scopes import Globals
from trapline.d.check.stability import description_attribute, least, parse_attribute, shown
from trapline.d.codegen.statements import Statements
from trapline.d.errors import CompileError, Location, Region, within
from trapline.d.parse import ast
from trapline.d.parse.ast import DEPTH_MAX, check_depth, names_in
from trapline.d.parse.branches import branch_free
from trapline.d.parse.descriptions import Form, parse_description, why_none
from trapline.d.parse.lexer import Lexer
from trapline.d.parse.macros import Macros
from trapline.d.parse.parser import literals, parse_items
from trapline.d.parse.unparse import unparse
from trapline.d.types.names import KERNEL, KERNEL_MODULES
from trapline.d.types.types import Type
from trapline.framework.base.dif import INTEGER_REGISTERS
from trapline.framework.base.dynvars import STRING_SIZE
from trapline.framework.base.program import STABLE, ActionDescription, EcbDescription, ProbeDescription, Program

if TYPE_CHECKING:
    from providers.base import ArgumentDescription, Attribute
    from trapline.framework.base.device import ProbeInfo
    from trapline.options import Options

__all__ = ["CompileContext", "CompileError", "Form", "Globals", "compile_program", "type_of_text"]

# The largest number of Python calls for a level of nesting.
_CALLS_PER_LEVEL: Final = 20


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
    dump: Callable[[str], object] | None = None
    """Takes the text of each item after its transformation (-d); None: it is not wanted."""

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
            error.location = error.location or compiler.location(error.line or compiler.line)
        raise
    except RecursionError:
        # Each item is within the limit, but inlines or typedefs refer to one another through too many levels.
        deep = CompileError("D_SYNTAX", "inlines or types refer to each other through too many levels")
        deep.location = compiler.location(compiler.line) if context.form is Form.SCRIPT else None
        raise deep from None


def type_of_text(text: str, names: Globals) -> Type:
    """Return the type of a name, as providers and records give it: `struct proc *`.

    Raises `CompileError`.
    """
    macros = Macros((), {}, missing_allowed=False)
    lexer = Lexer(f"BEGIN {{ sizeof ({text}) }}", names, _refuse_control, macros, literals(), pspec=True)
    match list(parse_items(lexer)):
        case [ast.Clause(body=[ast.SizeOfType(type=named)])]:
            return Expressions(names).declarators.type_name(named)
    raise CompileError("D_SYNTAX", f"'{text}' is not a type", 1)


def _refuse_control(text: str, line: int) -> None:
    raise CompileError("D_SYNTAX", f"#{text} in a type", line)


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
        self._providers = Providers(self._names, self._expressions.declarators, self._expressions.translators)
        self._statement = 0
        self._stability = STABLE

    # -- the passes

    def compile(self) -> Program:
        """Compile the program.  Raises `CompileError`."""
        clauses: list[ast.Clause] = []
        # A declaration decides how the text after it is parsed: it takes effect before the next item is read.
        for item in self._parse():
            if isinstance(item, ast.Clause):
                self._check_form(item)
                clauses.append(item)
            else:
                self._declare(item)
        ecbs = [ecb for clause in clauses for ecb in self._compile_clause(clause)]
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

    def _compile_clause(self, clause: ast.Clause) -> Iterator[EcbDescription]:
        """Compile a clause for each of its probe descriptions, as types of arguments differ."""
        parts = branch_free(clause)
        names = names_in(replace(clause, probes=()))
        for probe in clause.probes:
            description = self._resolve(probe)
            self._stability = minimum(self._stability, self._stability_of(names, description, clause.line))
            self._expressions.elements.arguments = ProbeArguments(
                description, self._context.probes, self._context.argument, self._argument_type
            )
            for part in parts:
                self._expressions.forget()
                check_clause(part, self._expressions, self._names)
                yield self._generate(part, description)
            self._expressions.elements.arguments = None

    # -- parse

    def _parse(self) -> Iterator[ast.Item]:
        empty = True
        for item in parse_items(self._lexer):
            empty = False
            check_depth(item)
            if self._options.is_set("tree"):
                self._context.show(unparse(item))
            if self._context.dump is not None:
                for part in branch_free(item) if isinstance(item, ast.Clause) else (item,):
                    self._context.dump(unparse(part))
            yield item
        if empty and not self._options.is_set("empty"):
            raise CompileError("D_EMPTY", "the program is empty: it has no clause and no declaration")

    def _option_set(self, name: str) -> None:
        if name == "defaultargs":
            self._macros.allow_missing()
        elif name == "version":
            version = tuple(map(int, self._options.text("version").split(".")))
            self._names.use_version(version)
        elif name == "strsize":
            self._strsize = self._expressions.strsize = self._options.number("strsize", STRING_SIZE)

    @property
    def line(self) -> int:
        """Line of the text that was read last."""
        return self._lexer.line

    def location(self, line: int) -> Location:
        """Return where a line of the text comes from."""
        return self._pragmas.location(line)

    def _check_form(self, clause: ast.Clause) -> None:
        """Refuse a clause without braces, if it has a predicate or is of a script."""
        if clause.body is not None:
            return
        if clause.predicate is not None:
            raise CompileError("D_SYNTAX", "a predicate needs an action in braces after it: { }", clause.line)
        if self._context.form is not Form.SCRIPT:
            return
        raise CompileError("D_SYNTAX", "expected predicate and/or actions following probe description", clause.line)

    # -- types, check

    def _declare(self, item: ast.Declaration | ast.Inline | ast.Translator | ast.Provider) -> None:
        match item:
            case ast.Declaration():
                self._expressions.declarations.declare(item)
            case ast.Inline():
                self._expressions.declarations.define_inline(item)
            case ast.Translator():
                self._expressions.translators.define(item)
                self._pragmas.translator_defined(item.line)
            case ast.Provider():
                self._providers.define(item)

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

    def _resolve(self, probe: ast.ProbeText) -> ProbeDescription:
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

    # -- codegen

    def _generate(self, clause: ast.Clause, description: ProbeDescription) -> EcbDescription:
        """Generate the actions of a checked clause, then its predicate."""
        registers = self._options.number("iregs", INTEGER_REGISTERS)
        statements = Statements(
            self._expressions, self._names, registers=registers, strsize=self._strsize, target=self._context.target
        )
        actions: list[ActionDescription] = []
        with within(Region.ACTIONS):
            for made in statements.compile(clause.body or ()):
                self._statement += 1
                actions += [replace(action, statement=self._statement) for action in made]
        with within(Region.PREDICATE):
            predicate = None if clause.predicate is None else statements.predicate(clause.predicate)
        return EcbDescription(description, predicate, tuple(actions))
