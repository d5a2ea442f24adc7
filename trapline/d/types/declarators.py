"""The types that declarations write: of words and declarators, with the layouts of structs.

Source: FreeBSD libdtrace dt_decl.c.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from emu.support.immutable import immutable
from trapline.d.errors import CompileError
from trapline.d.parse import ast
from trapline.d.parse.lexer import QUALIFIERS, STORAGE_WORDS
from trapline.d.types.data_models import base_type
from trapline.d.types.names import TypeNames
from trapline.d.types.rules import align_of, is_dynamic, is_integer, is_string, is_void, size_of
from trapline.d.types.types import Array, Composite, Enumeration, Function, Kind, Member, Type, resolve, type_name
from trapline.framework.base.program import Scope

# Tag of the error of a word before a type that has a name.
_COMBINATIONS: Final = {
    **dict.fromkeys(("long", "short"), "D_DECL_LONGINT"),
    **dict.fromkeys(("signed", "unsigned"), "D_DECL_SIGNINT"),
}
_NUMBERS: Final = frozenset({"int", "char", "short", "long"})
_ARRAY_MAX: Final = (1 << 32) - 1
_INT_MIN, _INT_MAX = -(1 << 31), (1 << 31) - 1
# Keyword before a declaration or before `->` -> the scope it means.
SCOPES: Final = {"self": Scope.THREAD, "this": Scope.LOCAL}

# Gives the value of a constant integer expression, None if it is not one.
Fold = Callable[[ast.Expression], int | None]


@immutable
class Specified:
    """The meaning of the words before the declarators."""

    type: Type
    storage: str
    """`typedef`, `extern`, ...; empty if there is none."""
    scope: Scope
    userland: bool


class Declarators:
    """Makes types of declarations; tags that they define are added to the names of types."""

    def __init__(self, names: TypeNames, fold: Fold) -> None:
        self._names = names
        self._fold = fold

    def type_name(self, node: ast.TypeName | ast.Parameter) -> Type:
        """Return the type that a cast, sizeof or parameter names."""
        specified = self.specified(node.specifiers)
        if specified.storage and specified.storage != "register":
            raise CompileError("D_DECL_PARMCLASS", f"{specified.storage} is not allowed here", node.line)
        return self.declared(specified, node.declarator)[0] if node.declarator else specified.type

    def specified(self, node: ast.Specifiers) -> Specified:
        """Read the words of a declaration."""
        storage, scope, userland = "", Scope.GLOBAL, False
        words: list[str] = []
        named: Type | None = None
        for word in node.words:
            if isinstance(word, ast.Word) and word.word in SCOPES:
                if scope is not Scope.GLOBAL or storage:
                    raise CompileError("D_DECL_CLASS", f"{word.word} cannot be combined with another class", word.line)
                scope = SCOPES[word.word]
            elif isinstance(word, ast.Word) and word.word in STORAGE_WORDS:
                if storage or scope is not Scope.GLOBAL:
                    storage = storage or scope.name.lower()
                    raise CompileError("D_DECL_CLASS", f"{storage} and {word.word} cannot be combined", word.line)
                storage = word.word
            elif isinstance(word, ast.Word) and word.word in QUALIFIERS:
                userland = userland or word.word == "userland"
            elif isinstance(word, ast.Word):
                words.append(word.word)
            elif named is not None:
                raise CompileError("D_DECL_COMBO", "a declaration has one type", word.line)
            else:
                named = self._named(word)
        return Specified(self._base(named, words, node.line), storage, scope, userland)

    def _base(self, named: Type | None, words: list[str], line: int) -> Type:
        if named is not None:
            if words:
                tag = _COMBINATIONS.get(words[0], "D_DECL_COMBO")
                raise CompileError(tag, f"{words[0]} cannot be combined with {type_name(named)}", line)
            return named
        base = base_type(words, self._names.model)
        if base is None:
            raise CompileError(_combination_tag(Counter(words)), f"'{' '.join(words)}' is not a type", line)
        return base

    def _named(self, word: ast.NamedType | ast.CompositeSpecifier | ast.EnumSpecifier) -> Type:
        match word:
            case ast.NamedType(name=name):
                found = self._names.typedef(name)
                assert found is not None
                return found
            case ast.EnumSpecifier():
                return self._enumeration(word)
        return self._composite(word)

    def _tagged(self, keyword: str, tag: str, line: int, *, defines: bool) -> Composite | Enumeration:
        """Return the type of a tag, which may be completed later."""
        if not tag:
            known = None
        elif defines:
            known = self._names.tags.get((keyword, tag))
        else:
            known = self._names.tag(keyword, tag)
        if known is None and "`" in tag:
            raise CompileError("D_UNKNOWN", f"{keyword} {tag} is not known", line)
        if known is None:
            known = Enumeration(tag) if keyword == "enum" else Composite(Kind[keyword.upper()], tag)
            if tag:
                self._names.tags[keyword, tag] = known
        return known

    def _composite(self, node: ast.CompositeSpecifier) -> Composite:
        found = self._tagged(node.keyword, node.tag, node.line, defines=node.members is not None)
        assert isinstance(found, Composite)
        if node.members is not None:
            if found.members is not None:
                raise CompileError("D_DECL_TYPERED", f"{type_name(found)} is defined already", node.line)
            self._lay_out(found, node.members)
        return found

    def _lay_out(self, composite: Composite, nodes: Iterable[ast.MemberDeclaration]) -> None:
        """Give the members their offsets, as C does."""
        members: list[Member] = []
        position, alignment = 0, 1
        for node in nodes:
            specified = self.specified(node.specifiers)
            fields = node.fields or (ast.Field(node.line, None, None),)
            for one in fields:
                type_, name, bits = self._field(specified, one, node.line)
                if name and any(member.name == name for member in members):
                    raise CompileError("D_UNKNOWN", f"{name} is a member of {type_name(composite)} already", one.line)
                size, step = _extent(type_, bits)
                start = 0 if composite.kind is Kind.UNION else -(-position // (8 * step)) * 8 * step
                position = max(position, start + 8 * size)
                alignment = max(alignment, step)
                members.append(Member(name, type_, start, bits or 0))
        composite.members = tuple(members)
        composite.alignment = alignment
        composite.size = -(-position // (8 * alignment)) * alignment

    def _field(self, specified: Specified, node: ast.Field, line: int) -> tuple[Type, str, int | None]:
        if node.declarator is None:
            if node.bits is None and not isinstance(resolve(specified.type), Composite):
                raise CompileError("D_DECL_MNAME", "a member needs a name", line)
            type_, name, keys = specified.type, "", None
        else:
            type_, name, keys = self.declared(specified, node.declarator)
        if is_void(type_) or isinstance(resolve(type_), Function):
            raise CompileError("D_DECL_VOIDOBJ", f"member {name} cannot be {type_name(type_)}", line)
        if keys is not None:
            raise CompileError("D_DECL_DYNOBJ", f"member {name} cannot be an associative array", line)
        if not is_complete(type_):
            raise CompileError("D_DECL_INCOMPLETE", f"member {name}: {type_name(type_)} is not defined", line)
        if node.bits is None:
            return type_, name, None
        bits = self._fold(node.bits)
        if bits is None or bits <= 0:
            raise CompileError("D_DECL_BFCONST", f"the width of {name} is not a positive constant", line)
        if not is_integer(type_):
            raise CompileError("D_DECL_BFTYPE", f"bit-field {name} is {type_name(type_)}, not an integer", line)
        if bits > 8 * size_of(type_):
            raise CompileError("D_DECL_BFSIZE", f"{bits} bits of {name} do not fit in {type_name(type_)}", line)
        return type_, name, bits

    def _enumeration(self, node: ast.EnumSpecifier) -> Enumeration:
        found = self._tagged("enum", node.tag, node.line, defines=node.enumerators is not None)
        assert isinstance(found, Enumeration)
        if node.enumerators is None:
            return found
        if found.enumerators is not None:
            raise CompileError("D_DECL_TYPERED", f"{type_name(found)} is defined already", node.line)
        value = 0
        found.enumerators = {}
        for enumerator in node.enumerators:
            if enumerator.value is not None:
                folded = self._fold(enumerator.value)
                if folded is None:
                    raise CompileError(
                        "D_DECL_ENCONST", f"the value of {enumerator.name} is not an integer constant", enumerator.line
                    )
                value = folded
            if not _INT_MIN <= value <= _INT_MAX:
                raise CompileError("D_DECL_ENOFLOW", f"the value of {enumerator.name} is not an int", enumerator.line)
            if self._names.is_defined(enumerator.name):
                tag = "D_UNKNOWN" if enumerator.name in found.enumerators else "D_DECL_IDRED"
                raise CompileError(tag, f"{enumerator.name} is defined already", enumerator.line)
            found.enumerators[enumerator.name] = value
            self._names.enumerators[enumerator.name] = (value, found)
            value += 1
        return found

    def declared(self, specified: Specified, node: ast.Declarator) -> tuple[Type, str, tuple[Type, ...] | None]:
        """Apply a declarator: the type, the name, and the keys if it is an associative array."""
        type_ = specified.type
        keys: tuple[Type, ...] | None = None
        for index, part in reversed(list(enumerate(node.parts))):
            match part:
                case ast.PointerPart():
                    type_ = self._names.model.pointer_to(type_, userland=specified.userland)
                case ast.FunctionPart():
                    type_ = Function(type_, self._parameters(part), part.varargs)
                case ast.ArrayPart(keys=parameters) if parameters is not None:
                    if part.varargs:
                        raise CompileError("D_DECL_PROTO_VARARGS", "a list of keys cannot end in ...", part.line)
                    if index:
                        raise CompileError(
                            "D_DECL_DYNOBJ", f"{node.name}: an associative array cannot be part of an array", part.line
                        )
                    keys = self._keys(parameters)
                case ast.ArrayPart():
                    type_ = Array(self._element(type_, part.line), self._count(part, node))
        return type_, node.name, keys

    def _element(self, type_: Type, line: int) -> Type:
        if is_void(type_):
            raise CompileError("D_DECL_VOIDOBJ", "an array of void", line)
        return type_

    def _count(self, part: ast.ArrayPart, node: ast.Declarator) -> int:
        if part.size is None:
            return 0
        count = self._fold(part.size)
        if count is None or count <= 0:
            raise CompileError("D_DECL_ARRSUB", f"the size of {node.name} is not a positive constant", part.line)
        if count > _ARRAY_MAX:
            raise CompileError("D_DECL_ARRBIG", f"{node.name} cannot have {count} elements", part.line)
        return count

    def _parameters(self, part: ast.FunctionPart) -> tuple[Type, ...]:
        return tuple(type_ for _name, type_ in self.parameters(part))

    def parameters(self, part: ast.FunctionPart) -> tuple[tuple[str, Type], ...]:
        """Return the names (empty: none) and types of the parameters of a prototype."""
        found = [
            (parameter.declarator.name if parameter.declarator else "", self.type_name(parameter))
            for parameter in part.parameters
        ]
        if any(parameter.declarator and _has_keys(parameter.declarator) for parameter in part.parameters):
            raise CompileError("D_DECL_PROTO_TYPE", "a parameter cannot be an associative array", part.line)
        names = [name for name, _type in found if name]
        if len(set(names)) < len(names):
            raise CompileError("D_DECL_PROTO_FORM", "two parameters of one name", part.line)
        if any(is_void(type_) for _name, type_ in found):
            if len(found) > 1:
                raise CompileError("D_DECL_PROTO_VOID", "void must be the only parameter", part.line)
            if names:
                raise CompileError("D_DECL_PROTO_NAME", f"{names[0]}: a void parameter has no name", part.line)
            return ()
        return tuple(found)

    def _keys(self, parameters: Iterable[ast.Parameter]) -> tuple[Type, ...]:
        keys = []
        for parameter in parameters:
            type_ = self.type_name(parameter)
            if is_void(type_) or is_dynamic(type_):
                raise CompileError("D_DECL_PROTO_TYPE", f"a key cannot be {type_name(type_)}", parameter.line)
            keys.append(type_)
        return tuple(keys)


def _has_keys(node: ast.Declarator) -> bool:
    return any(isinstance(part, ast.ArrayPart) and part.keys is not None for part in node.parts)


def _extent(type_: Type, bits: int | None) -> tuple[int, int]:
    """Return how many bytes a member takes, and their alignment.

    A bit-field has bytes of its own, as many as it needs, rounded up to a power of two: D does not
    pack two into one (CTF ctf_create.c, ctf_add_encoded() and ctf_add_member()).
    """
    if bits is None:
        return size_of(type_), align_of(type_)
    size = 1 << (-(-bits // 8) - 1).bit_length()
    return size, size


def is_complete(type_: Type) -> bool:
    """Return whether a type has a size, or is an array whose elements have one."""
    resolved = resolve(type_)
    if isinstance(resolved, Composite):
        return resolved.members is not None
    if isinstance(resolved, Enumeration):
        return resolved.enumerators is not None
    if isinstance(resolved, Array):
        return is_complete(resolved.element)
    return bool(size_of(resolved)) or is_string(resolved) or isinstance(resolved, Array)


def _combination_tag(words: Counter[str]) -> str:
    """Return the error's tag for words that do not make a type."""
    bases = [word for word in words if word not in {"signed", "unsigned", "short", "long"}]
    if len(bases) > 1 or words["long"] > 2 or max(words[word] for word in ("short", "signed", "unsigned")) > 1:
        return "D_DECL_COMBO"
    if words["void"]:
        return "D_DECL_VOIDATTR"
    if (words["short"] and words["long"]) or (words["signed"] and words["unsigned"]):
        return "D_UNKNOWN"
    if words["char"]:
        return "D_DECL_CHARATTR"
    if (words["signed"] or words["unsigned"]) and not set(bases) <= _NUMBERS:
        return "D_DECL_SIGNINT"
    return "D_DECL_LONGINT" if words["long"] else "D_DECL_COMBO"
