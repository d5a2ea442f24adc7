"""Put a model solution into a folder that `trapline lab start` has made, or a wrong one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import trapline
from tests.trapline.lab.course.solutions import mended
from trapline.lab.course.work import ANSWERS

HERE = Path(__file__).parent

RELATIVE = {
    "x86_64": "lea rax, [rip+8]",
    "i386": "jecxz 0x20010",
    "aarch64": "adrp x0, #4096",
    "riscv64": "auipc a0, 1",
}
SAME = {"x86_64": "add eax, ecx", "i386": "add eax, ecx", "aarch64": "add x0, x0, #1", "riscv64": "addi a0, a0, 1"}
REFUSED = {"x86_64": "int3", "i386": "int3", "aarch64": "ldxr x1, [x0]", "riscv64": "lr.d a0, (a1)"}


def solve(number: int, folder: Path, isa: str) -> None:
    """Put the model solution of a sheet into a folder."""
    for file in sorted((HERE / str(number)).glob("*")):
        if file.is_file():
            (folder / file.name).write_text(file.read_text().replace("{isa}", isa))
    answers = _ANSWERS.get(number, _no_answers)(folder, isa)
    head = "".join((folder / ANSWERS).read_text().splitlines(keepends=True)[:2])
    (folder / ANSWERS).write_text(head + "".join(f'{name} = "{value}"\n' for name, value in answers.items()))


def _no_answers(_folder: Path, _isa: str) -> Mapping[str, object]:
    return {}


def _first(_folder: Path, isa: str) -> Mapping[str, object]:
    (function,) = trapline.sites("testbins:kernel", function="sys_kldfind", isa=isa)
    entry, *returns = function.sites
    return {
        "entry_offset": entry.instruction.offset, "entry_bytes": entry.instruction.code.hex(),
        "entry_patch": entry.patch.hex(), "returns": len(returns), "displaced": str(entry.decision.plan),
    }  # fmt: skip


def _second(folder: Path, isa: str) -> Mapping[str, object]:
    for name, text in (("relative", RELATIVE), ("same", SAME), ("refused", REFUSED)):
        (folder / f"{name}.s").write_text(f"// mine\n{text[isa]}\n")
    return {"why": trapline.displace(isa, REFUSED[isa])[0].decision("pid").rule}


def _tenth(folder: Path, isa: str) -> Mapping[str, object]:
    change(folder / "rules.py", *mended.CHANGES[isa])
    return dict(zip(("first", "second"), mended.SHOWN[isa], strict=True))


_ANSWERS: dict[int, Callable[[Path, str], Mapping[str, object]]] = {1: _first, 2: _second, 10: _tenth}


def change(file: Path, *changes: tuple[str, str]) -> None:
    """Replace texts in a file, each of which must be there."""
    text = file.read_text()
    for old, new in changes:
        assert old in text, (file, old)
        text = text.replace(old, new)
    file.write_text(text)


class Wrong(NamedTuple):
    """A typical wrong answer: a change of the model solution."""

    file: str
    old: str
    new: str
    part: str
    """The part of the task that it costs."""
    why: str
    """What the student is told of it, somewhere in the line."""
    isas: str = "x86_64 i386 aarch64 riscv64"
