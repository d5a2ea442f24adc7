"""Translators: structs whose members are expressions over another value.

    translator psinfo_t < struct proc *P > { pr_pid = P->p_pid; ... };
    xlate <psinfo_t *> (curthread->td_proc)->pr_pid

No struct is built to read one member: `xlate <T *> (e)->m` is the expression of `m`, with `e` for
the translator's parameter.  Only a whole translation that is assigned to a variable is computed
member by member.

Source: FreeBSD libdtrace dt_xlator.c, dt_parser.c (dt_cook_xlator, dt_node_xlator), dt_cg.c
(dt_cg_xlate_expand).
"""

from __future__ import annotations

from typing import Final

from emu.support.immutable import immutable
from trapline.d.check import typed
from trapline.d.check.conversions import compatible, converted
from trapline.d.check.declarations import Check, Within
from trapline.d.check.scopes import Globals
from trapline.d.errors import CompileError, did_you_mean
from trapline.d.parse import ast
from trapline.d.types.declarators import Declarators
from trapline.d.types.rules import element_of, is_integer, is_pointer, is_text, pointers_compatible, same
from trapline.d.types.types import STRING, Array, Composite, Type, resolve, type_name

# How the tag of a structure ends whose translation adds names to the members of another one.
_ADDS_NAMES: Final = "_names"


@immutable
class Translators:
    """Defines translators, finds them, and gives the members of translations."""

    _names: Globals
    _declarators: Declarators
    _check: Check
    _within: Within

    def define(self, node: ast.Translator) -> None:
        """Define a translator.  Raises `CompileError` D_XLATE_*."""
        output = resolve(self._declarators.type_name(node.output))
        if not isinstance(output, Composite) or output.members is None:
            raise CompileError("D_XLATE_SOU", f"{type_name(output)} is not a struct or union with members", node.line)
        specified = self._declarators.specified(node.specifiers)
        input_, name, _keys = self._declarators.declared(specified, node.declarator)
        if self._names.translators.between(input_, output) is not None:
            raise CompileError(
                "D_XLATE_REDECL", f"{type_name(output)} < {type_name(input_)} > is translated already", node.line
            )
        translator = typed.Translator(output, typed.Parameter(name, input_))
        with self._within((translator.input,)):
            for member in node.members:
                translator.members[member.name] = self._member(output, member)
        self._names.translators.add(translator)

    def _member(self, output: Composite, node: ast.TranslatorMember) -> typed.Node:
        member = output.member(node.name)
        if member is None:
            hint = did_you_mean(node.name, output.names())
            raise CompileError("D_XLATE_MEMB", f"{node.name} is not a member of {type_name(output)}{hint}", node.line)
        value = self._check(node.value)
        if isinstance(resolve(member.type), Array) and is_text(member.type) and is_text(value.type):
            return value if same(member.type, value.type) else typed.Relabel(value, STRING)
        try:
            fitting = converted(value, member.type, node.name, node.line)
        except CompileError:
            if not compatible(member.type, value):
                raise CompileError(
                    "D_XLATE_INCOMPAT",
                    f"{node.name} is {type_name(member.type)}: {type_name(value.type)} cannot be assigned to it",
                    node.line,
                ) from None
            fitting = value
        return typed.Convert(fitting, member.type) if is_integer(member.type) else typed.Relabel(fitting, member.type)

    def translate(self, target: Type, operand: typed.Node, line: int) -> typed.Translation:
        """Return the translation of a value.  Raises `CompileError` D_XLATE_NONE, D_XLATE_SOU."""
        output = resolve(element_of(target) or target if is_pointer(target) else target)
        if not isinstance(output, Composite) or output.members is None:
            raise CompileError("D_XLATE_SOU", f"{type_name(target)} is not a struct or union with members", line)
        exact = self._names.translators.between(operand.type, output)
        others = self._names.translators.to(output)
        fitting = exact or next((one for one in others if _compatible(one.input.type, operand.type)), None)
        if fitting is not None:
            return typed.Translation(fitting, operand, target)
        raise CompileError("D_XLATE_NONE", f"no translator from {type_name(operand.type)} to {type_name(target)}", line)

    def passed(self, shown: Type, value: typed.Node, line: int) -> typed.Node:
        """Return a probe's argument as a program sees it: translated, or of a compatible type.

        Raises `CompileError` D_XLATE_NONE, D_XLATE_SOU.  Source: FreeBSD libdtrace dt_provider.c
        (dt_probe_create), dt_ident.c (dt_idcook_args).
        """
        try:
            return self.translate(shown, value, line)
        except CompileError:
            if not compatible(shown, value):
                raise
        return typed.Relabel(value, shown)

    def implied(self, operand: typed.Node, name: str, line: int, *, given: bool) -> typed.Node | None:
        """Return a member that only the one translation of a value's type has, or None.

        illumos passes translated arguments where FreeBSD passes its own structures, and illumos'
        scripts should run too: with this, `args[0]->b_bcount` means `args[0]->bio_bcount`.  So the
        value is `given` by the system, or the type translated to only adds names to the structure
        (trapline/dlib/kernel/threads.d).
        """
        fitting = [
            known
            for known in self._names.translators.of(operand.type)
            if name in known.members and (given or known.output.tag.endswith(_ADDS_NAMES))
        ]
        if len(fitting) != 1:
            return None
        return self.member(typed.Translation(fitting[0], operand, fitting[0].output), name, line)

    @staticmethod
    def member(translation: typed.Translation, name: str, line: int) -> typed.Node:
        """Return one member of a translation.  Raises `CompileError` D_XLATE_NOCONV."""
        translator = translation.translator
        body = translator.members.get(name)
        if body is not None:
            return typed.Let((translator.input,), (translation.operand,), body)
        hint = did_you_mean(name, translator.members)
        raise CompileError(
            "D_XLATE_NOCONV", f"the translator to {type_name(translator.output)} does not define {name}{hint}", line
        )

    @staticmethod
    def whole(node: typed.Node) -> typed.Node:
        """Return a translation, or an inline that is one, as a struct with all translated members."""
        if isinstance(node, typed.Let):
            return typed.Let(node.parameters, node.arguments, Translators.whole(node.body))
        if not isinstance(node, typed.Translation):
            return node
        translation, translator = node, node.translator
        fields = []
        for name, value in translator.members.items():
            member = translator.output.member(name)
            assert member is not None
            fields.append((member, value))
        built = typed.Build(translator.output, tuple(fields))
        return typed.Let((translator.input,), (translation.operand,), built)


def _compatible(wanted: Type, given: Type) -> bool:
    if is_pointer(wanted):
        return pointers_compatible(wanted, given) or is_integer(given)
    return is_integer(wanted) and is_integer(given)
