"""docs/objects.md says which structures and members each glue reads and writes: recorded from checks."""

from collections import defaultdict
from pathlib import Path

import pytest

from emu.elf.image import Image
from emu.guest.kernel.boot.images import built
from emu.isa import ISAS
from trapline.lab.objects.check import check_objects
from trapline.lab.objects.glues import GLUES
from trapline.lab.objects.request import Request
from trapline.lab.objects.structures import View
from trapline.lab.objects.user_code import UserCode

PAGE = Path(__file__).parents[4] / "docs" / "objects.md"
# The package's own objects for each glue; those for FreeBSD's fasttrap are the sources of a system.
OBJECTS = {
    "fbt": (("scanner.o", "subr.o"), ("scanner.o", "trap.o")),
    "illumos-fasttrap": (("illumos_fasttrap.o",),),
    "illumos-fbt": (("illumos_fbt.o", "illumos_trap.o"),),
    "linux-kprobes": (("kprobes.o",),),
    "linux-uprobes": (("decoder.o",), ("xol.o",)),
}
# The structures of registers, of which the page says that all members are used.
REGISTERS = {"pt_regs", "trapframe", "regs"}


def _needs(glue: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, set[str]]]:
    """Return structure -> member -> the ISAs on which a glue reads or writes it; "" for the structure itself."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    find, layout, names = View._find, UserCode.layout, {}
    isa = next(iter(ISAS.values()))

    def member(view, key):
        found[names[id(view._layout)]][key if isinstance(key, str) else key[0]].add(isa.title)
        return find(view, key)

    def structure(code, name):
        kind = layout(code, name)
        names[id(kind)] = name
        found[name][""].add(isa.title)
        return kind

    monkeypatch.setattr(View, "_find", member)
    monkeypatch.setattr(UserCode, "layout", structure)
    for isa in ISAS.values():
        for objects in OBJECTS[glue]:
            paths = [built(isa) / "objects" / name for name in objects]
            if all(path.exists() for path in paths):
                check_objects(paths, GLUES[glue], Request(Image(built(isa) / "kernel"), "sys_access"), isa)
    return found


def _row(glue: str, structure: str, members: dict[str, set[str]]) -> str:
    """Return the row of the page's table for a structure; a member that not all of its ISAs have is told so."""
    if structure in REGISTERS:
        return f"| `{glue}` | `{structure}` | the registers |"
    isas = members[""]
    texts = [
        f"`{name}`" + ("" if on == isas else f" ({', '.join(one.title for one in ISAS.values() if one.title in on)})")
        for name, on in members.items()
        if name
    ]
    return f"| `{glue}` | `{structure}` | {', '.join(texts) or 'none, its address is passed on'} |"


@pytest.mark.parametrize("glue", OBJECTS)
def test_the_page_lists_what_a_glue_needs(glue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = [" ".join(line.split()) for line in PAGE.read_text().splitlines() if line.startswith(f"| `{glue}`")]
    rows = [_row(glue, structure, members) for structure, members in _needs(glue, monkeypatch).items()]
    assert rows
    assert [row for row in rows if row not in written] == []
    # The other tables of the page have rows of glues, too, whose second column is no structure.
    assert [row for row in written if row.split("|")[2].startswith(" `") and row not in rows] == []
