"""Assembly text taken apart: statements, labels, directives, comments."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from emu.isa.assembly import number_in
from emu.support.did_you_mean import counted


class AssemblyError(Exception):
    """Text that cannot be assembled: the message names the instruction and what is wrong."""


# Directive -> bytes of each of its numbers.
DIRECTIVES: Final = {
    ".byte": 1, ".2byte": 2, ".short": 2, ".half": 2, ".4byte": 4, ".word": 4, ".inst": 4, ".long": 4, ".8byte": 8,
    ".quad": 8, ".dword": 8,
}  # fmt: skip
_LABEL: Final = re.compile(r"\s*([A-Za-z_.$][\w.$]*|\d+)\s*:(?!:)")
_COMMENT: Final = re.compile(r"//.*|(?:^|\s)#(?![-+\w]).*")
_LOCAL: Final = re.compile(r"(?<![\w.$#])(\d+)([bf])(?![\w.$])")


class Statement(NamedTuple):
    """One instruction or directive."""

    number: int
    """Its number, from 1."""
    line: int
    """Its line, from 1."""
    text: str
    labels: tuple[str, ...]
    """The labels before it."""

    @property
    def name(self) -> str:
        """The mnemonic or the directive, in small letters."""
        return self.text.split(None, 1)[0].lower()

    @property
    def operands(self) -> str:
        """The text after the name."""
        return self.text.split(None, 1)[1].strip() if " " in self.text else ""

    def error(self, message: str, lines: int = 1) -> AssemblyError:
        """Return an error that names the statement; `lines`: how many lines the text has."""
        where = f"line {self.line}, instruction {self.number}" if lines > 1 else f"instruction {self.number}"
        return AssemblyError(f"{where}, '{self.text}': {message}")


def statements(text: str) -> list[Statement]:
    """Return the statements of a text; labels at its end stand before an empty one.

    Raises `AssemblyError` if there is none.
    """
    found: list[Statement] = []
    labels: list[str] = []
    for line, content in enumerate(text.splitlines(), 1):
        for piece in _COMMENT.sub("", content).split(";"):
            rest = piece
            while (label := _LABEL.match(rest)) is not None:
                labels.append(label.group(1))
                rest = rest[label.end() :]
            if rest.strip():
                found.append(Statement(len(found) + 1, line, " ".join(rest.split()), tuple(labels)))
                labels = []
    if not found:
        raise AssemblyError("the code has no instruction")
    if labels:
        found.append(Statement(len(found) + 1, len(text.splitlines()), "", tuple(labels)))
    return found


def data_of(statement: Statement) -> bytes | None:
    """Return the bytes of a directive; None for an instruction.  Raises ValueError."""
    if not statement.name.startswith("."):
        return None
    size = DIRECTIVES.get(statement.name)
    if size is None:
        raise ValueError(f"there are only the directives {', '.join(DIRECTIVES)}")
    numbers = [number_in(one.strip()) for one in statement.operands.split(",")]
    mask = (1 << 8 * size) - 1
    if any(not -(mask >> 1) - 1 <= one <= mask for one in numbers):
        raise ValueError(f"a number does not fit {counted(size, 'byte')}")
    return b"".join((one & mask).to_bytes(size, "little") for one in numbers)


class Labels:
    """The statements of labels, which are known once the sizes of the instructions are."""

    def __init__(self, found: list[Statement]) -> None:
        """Note where labels are.  Raises `AssemblyError` for one that is there twice."""
        self._statements: dict[str, int] = {}
        self._numbers: list[tuple[str, int]] = []
        for index, statement in enumerate(found):
            for label in statement.labels:
                if label.isdigit():
                    self._numbers.append((label, index))
                elif self._statements.setdefault(label, index) != index:
                    raise AssemblyError(f"the label '{label}' is there twice")
        names = sorted(map(re.escape, self._statements), key=len, reverse=True)
        self._names = re.compile(rf"(?<![\w.$])({'|'.join(names)})(?![\w.$])") if names else None

    def put_in(self, text: str, index: int, addresses: list[int], *, distances: bool) -> str:
        """Return the operands of statement `index` with numbers for labels."""
        origin = addresses[index] if distances else 0

        def value(at: int) -> str:
            distance = addresses[at] - origin
            return f"{distance:#x}"

        def local(found: re.Match[str]) -> str:
            label, direction = found.groups()
            found_at = [at for name, at in self._numbers if name == label]
            if direction == "b":
                before = [at for at in found_at if at <= index]
                return value(before[-1]) if before else found.group()
            after = [at for at in found_at if at > index]
            return value(after[0]) if after else found.group()

        if self._numbers:
            text = _LOCAL.sub(local, text)
        return self._names.sub(lambda found: value(self._statements[found.group(1)]), text) if self._names else text
