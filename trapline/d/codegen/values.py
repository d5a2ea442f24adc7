"""Expressions as the data of actions, and the actions that have a value.

Source: FreeBSD libdtrace dt_cc.c (dt_action_stack(), dt_action_symmod() and the like), dt_cg.c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from trapline.d.check import typed
from trapline.d.check.expressions import Expressions
from trapline.d.check.printf import Formats
from trapline.d.codegen.expressions import generate
from trapline.d.errors import CompileError
from trapline.d.parse import ast
from trapline.d.types.rules import diftype, is_pointer, is_reference, is_userland
from trapline.d.types.types import VOID, Kind
from trapline.framework.base.program import INT64 as INT64_RECORD
from trapline.framework.base.program import ActionDescription, ActionKind, Difo, DifType, LibraryAction, TypeKind

if TYPE_CHECKING:
    from trapline.d.check.builtins import Vocabulary

# Type of a value that is not recorded.
VOID_RECORD: Final = DifType(TypeKind.CTF, Kind.INTEGER.value, 0, 0)
STACKS: Final = {"stack": ActionKind.STACK, "ustack": ActionKind.USTACK, "jstack": ActionKind.JSTACK}
SYMBOLS: Final = {
    "sym": ActionKind.SYM,
    "func": ActionKind.SYM,
    "mod": ActionKind.MOD,
    "usym": ActionKind.USYM,
    "ufunc": ActionKind.USYM,
    "umod": ActionKind.UMOD,
    "uaddr": ActionKind.UADDR,
}
_INT_MAX: Final = (1 << 31) - 1

# The compiled form of a statement.
Actions: TypeAlias = list[ActionDescription]


def library(difo: Difo, action: LibraryAction) -> ActionDescription:
    """Make an action that only the consumer knows."""
    return ActionDescription(ActionKind.LIBACT, difo, argument=action)


class Values:
    """Compiles the records of the actions of one clause."""

    def __init__(
        self, expressions: Expressions, words: Vocabulary, *, registers: int, strsize: int, target: bool = False
    ) -> None:
        self._expressions = expressions
        self.words = words
        self.formats = Formats(words.model, target=target)
        self._registers = registers
        self._strsize = strsize

    def difo(self, node: typed.Node, returns: DifType | None = None) -> Difo:
        """Generate the DIF of an expression."""
        return generate(node, registers=self._registers, strsize=self._strsize, returns=returns)

    def fold(self, node: ast.Expression) -> int | None:
        """Return the value of a constant integer expression, None if it is none."""
        return self._expressions.constant(node)

    def check(self, node: ast.Expression) -> typed.Node:
        """Check an expression."""
        return self._expressions.check(node)

    def operand(self, node: ast.Expression) -> typed.Node:
        """Check an argument, which may be an aggregation; a translated struct is built completely."""
        found = self._expressions.argument(self.chosen(node))
        translation = typed.translation(found)
        if translation is not None and not is_pointer(translation.target):
            return self._expressions.translators.whole(found)
        return found

    def chosen(self, node: ast.Expression) -> ast.Expression:
        """Return the branch of a `?:` with a constant condition, or the expression itself."""
        return self._expressions.chosen(node)

    def argument(self, call: ast.Call, returns: DifType) -> Difo:
        """Compile the only argument of an action, an integer."""
        return self.difo(self.check(call.arguments[0]), returns)

    def constant(self, node: ast.Expression, tag: str, message: str, *, least: int) -> int:
        """Return the value of a constant expression.

        Raises `CompileError` `tag` if it is none, or too small.
        """
        value = self._expressions.constant(node)
        if value is None or not least <= value <= _INT_MAX:
            raise CompileError(tag, message, node.line)
        return value

    def _value_action(self, node: ast.Expression) -> ActionDescription | None:
        """Compile a call of stack(), sym() and the like; None for anything else."""
        if not isinstance(node, ast.Call) or not isinstance(node.function, ast.Name):
            return None
        name, count = node.function.name, len(node.arguments)
        if name in SYMBOLS:
            return ActionDescription(SYMBOLS[name], self.argument(node, INT64_RECORD))
        if name == "stack":
            if count > 1:
                raise CompileError("D_STACK_PROTO", f"stack( ) takes one argument at most, not {count}", node.line)
            frames = self._frames(node, "D_STACK_SIZE") if count else 0
            return ActionDescription(ActionKind.STACK, argument=frames)
        if name in STACKS:
            if count > 2:
                raise CompileError("D_USTACK_PROTO", f"{name}( ) takes two arguments at most, not {count}", node.line)
            frames = self._frames(node, "D_USTACK_FRAMES") if count else 0
            strings = 0
            if count > 1:
                message = f"{name}( ) argument #2 is not a constant of 0 or more"
                strings = self.constant(node.arguments[1], "D_USTACK_STRSIZE", message, least=0)
            return ActionDescription(STACKS[name], argument=strings << 32 | frames)
        return None

    def _frames(self, call: ast.Call, tag: str) -> int:
        message = "the number of frames is not a positive constant"
        return self.constant(call.arguments[0], tag, message, least=1)

    def datum(self, node: ast.Expression, kind: ActionKind) -> ActionDescription:
        """Compile a value of a statement: an action, or an expression recorded under `kind`."""
        node = self.chosen(node)
        action = self._value_action(node)
        if action is not None:
            return action
        checked = self.operand(node)
        return ActionDescription(kind, self.difo(checked, self._recorded(checked)))

    def address(self, node: ast.Expression, kind: ActionKind) -> ActionDescription:
        """Compile the address of an array, recorded under `kind`."""
        address = typed.Relabel(self.operand(node), self.words.model.pointer_to(VOID))
        return ActionDescription(kind, self.difo(address, diftype(address.type)))

    @staticmethod
    def _recorded(node: typed.Node) -> DifType:
        """Describe a value in its recorded form; a process's own memory is read from the process."""
        inner = node.operand if isinstance(node, typed.Relabel) else node
        userland = (isinstance(inner, typed.Memory) and inner.userland and is_reference(inner.type)) or (
            isinstance(node, typed.Relabel) and is_userland(node.operand.type)
        )
        return diftype(node.type, userland=userland)

    def format(self, name: str, node: ast.Expression, *, empty: bool = False) -> str:
        """Return the format of an action.

        Raises `CompileError` D_PRINTF_ARG_FMT, D_PRINTF_FMT_EMPTY.
        """
        node = self.chosen(node)
        if not isinstance(node, ast.Text):
            raise CompileError("D_PRINTF_ARG_FMT", f"{name}( ) needs a string constant as its format", node.line)
        if not node.value and not empty:
            raise CompileError("D_PRINTF_FMT_EMPTY", f"{name}( ) has an empty format", node.line)
        return node.value
