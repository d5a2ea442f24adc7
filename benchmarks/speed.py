"""Guest instructions per second without probes, against a bare Unicorn."""

from __future__ import annotations

from collections.abc import Sequence

import unicorn

from benchmarks.figures import Cell, Figures, Scale, interleaved
from benchmarks.firing import enter
from emu.elf.image import Image
from emu.engine.memory.pages import PAGE
from emu.guest.function import FunctionGuest
from emu.guest.kernel.boot import images
from emu.isa import Isa

# Function of testbins/functions -> number of timed rounds.
FUNCTIONS = {"work": 20_000, "digest": 20_000}
_STACK = 0x7000_0000
_FRAME = 256
_LANDING = 0x5000_0100  # not at a page start: emu_start looks up the byte before it


class BareUnicorn:
    """The same code on bare Unicorn: no counting, no traps, the same virtual TLB."""

    def __init__(self, isa: Isa, image: Image, function: str, rounds: int) -> None:
        self._isa = isa
        self._rounds = rounds
        self._entry = image.symbol(function).value
        self._uc = unicorn.Uc(isa.unicorn.architecture, isa.unicorn.mode)
        self._uc.ctl_set_tlb_mode(unicorn.UC_TLB_VIRTUAL)
        pages: dict[int, tuple[int, int]] = {}
        for segment in image.segments:
            for page in range(segment.vaddr // PAGE, -(-(segment.vaddr + segment.memsz) // PAGE)):
                access = segment.flags & 2 | (4 if segment.flags & 1 else 0) | 1
                pages[page] = (0, pages.get(page, (0, 0))[1] | access)
        pages |= dict.fromkeys(range(_STACK // PAGE - 16, _STACK // PAGE), (0, 3))
        pages[_LANDING // PAGE] = (0, 5)
        pages = {page: (number * PAGE, access) for number, (page, (_, access)) in enumerate(pages.items())}
        self._uc.mem_map(0, len(pages) * PAGE)

        def fill(_uc: object, address: int, _access: int, entry: object, _data: object) -> bool:
            physical, entry.perms = pages[address // PAGE]  # type: ignore[attr-defined]
            entry.paddr = physical + address % PAGE  # type: ignore[attr-defined]
            return True

        self._uc.hook_add(unicorn.UC_HOOK_TLB_FILL, fill)
        for segment in image.segments:
            for offset in range(0, len(segment.data), 1):
                address = segment.vaddr + offset
                if offset and address % PAGE:
                    continue
                size = min(PAGE - address % PAGE, len(segment.data) - offset)
                physical = pages[address // PAGE][0] + address % PAGE
                self._uc.mem_write(physical, bytes(segment.data[offset : offset + size]))
        self._stack_end = pages[_STACK // PAGE - 1][0] + PAGE

    def run(self) -> int:
        """Call the function; returns its result."""
        isa = self._isa
        sp = _STACK - (_FRAME if isa.registers.link else _FRAME + isa.word)
        enter(self._uc, isa, sp, _LANDING, self._rounds, self._stack_end - (_STACK - sp))
        self._uc.emu_start(self._entry, _LANDING)
        ids = isa.unicorn.ids
        return int(self._uc.reg_read(ids[isa.calling.results[0]]))


def measure(isas: Sequence[Isa], scale: Scale) -> Figures:
    """Measure on some ISAs."""
    return Figures(
        "Guest instructions per second, no probe enabled",
        ("ISA", "what", "bare Unicorn, MIPS", "Trapline, clock counting, MIPS", "% of bare", "without llvmlite, MIPS"),
        [_row(isa, function, scale) for isa in isas for function in FUNCTIONS],
        "testbins/functions: work is a sieve, a hash, a sort and calls through a table, blocks of 4 to 5 instructions; "
        "digest is SHA-256, blocks of 26 to 40.  Least of 7 interleaved runs.",
    )


def _row(isa: Isa, function: str, scale: Scale) -> list[Cell]:
    image = Image(images.function(isa, function))
    rounds = scale.rounds(FUNCTIONS[function])
    bare = BareUnicorn(isa, image, function, rounds)
    counted = FunctionGuest(isa, image, accelerated=True)
    python = FunctionGuest(isa, image, accelerated=False)
    limit = 1 << 40
    result = counted.call(rounds, function=function, limit=limit)
    if bare.run() != result:
        raise SystemExit(f"{isa.name}: the two engines disagree")
    count = counted.engine.instructions
    times = interleaved(
        {"bare": bare.run, "counted": lambda: counted.call(rounds, function=function, limit=limit)}, scale.turns(7)
    )
    short = max(1, rounds // 50)
    python_time = min(
        interleaved({"python": lambda: python.call(short, function=function, limit=limit)}, scale.turns(2)).values()
    )
    return [
        isa.title,
        function,
        count / times["bare"] / 1e6,
        count / times["counted"] / 1e6,
        100 * times["bare"] / times["counted"],
        count * short / rounds / python_time / 1e6,
    ]
