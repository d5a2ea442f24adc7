"""The speed of a sweep of a user's compiled decoder, by a loop in the emulator and one by one.

The decoders are `testbins:decoder.o`, for the ISAs whose instructions are words, and
`testbins:xol.o` for x86, where the answers are compared with rules in Python.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.figures import Cell, Figures, Scale
from emu.guest.kernel.boot import images
from emu.isa import Isa
from providers.fidelity import Fidelity
from trapline.lab.check.encodings.x86_space import DEFAULT_BOUND, Space
from trapline.lab.objects.decoder.byte_sweep import ByteSweep
from trapline.lab.objects.decoder.trial import PLACE
from trapline.lab.objects.decoder.word_sweep import STRIDE, WORDS, Sweep, loop_object
from trapline.lab.objects.kernels.linux_uprobes import LinuxUprobesGlue
from trapline.lab.objects.user_code import UserCode

_WORDS_SWEPT = 1 << 24
_BYTES_SWEPT = 1 << 20
_ASKED = 20_000
# Encodings before the clock starts: code is translated meanwhile.
_FIRST = 1000


def _seconds(action: Callable[[], object]) -> float:
    """Return the time of this process that a call takes: other work on the machine does not count."""
    begun = time.process_time()
    action()
    return time.process_time() - begun


def _decoder(isa: Isa, name: str) -> UserCode:
    path = images.built(isa) / "objects" / name
    return UserCode([path], LinuxUprobesGlue, isa, checked=False, beside=[loop_object(isa)])


def _row(isa: Isa, total: int, swept: int, fast: float, asked: int, slow: float) -> list[Cell]:
    """Return a row; `fast` and `slow` are seconds for so many encodings."""
    speed, single = swept / fast, asked / slow
    return [isa.name, total, round(speed), round(single), speed / single, total / speed / 60]


def _words(isa: Isa, scale: Scale, kept: Path) -> list[Cell]:
    code = _decoder(isa, "decoder.o")
    swept, asked = scale.rounds(_WORDS_SWEPT) // 16 * 16, scale.rounds(_ASKED)
    words = [(number * STRIDE % WORDS).to_bytes(4, "little") for number in range(asked)]
    sweep = Sweep(code, code.glue.decoder(), kept)
    sweep.run(_FIRST)
    fast = _seconds(lambda: sweep.run(swept))
    return _row(isa, WORDS, swept, fast, asked, _seconds(lambda: [code.glue.decide(PLACE, word) for word in words]))


def _bytes(isa: Isa, scale: Scale, kept: Path) -> list[Cell]:
    code = _decoder(isa, "xol.o")
    space = Space(isa.name, DEFAULT_BOUND)
    swept, asked = scale.rounds(_BYTES_SWEPT), scale.rounds(_ASKED)
    codes = [space.encoding(len(space) - 1 - number).code for number in range(asked)]
    sweep = ByteSweep(code.glue, space, Fidelity.LINUX, kept)
    sweep.run(_FIRST)
    fast = _seconds(lambda: sweep.run(swept))

    def ask() -> None:
        for one in codes:
            code.glue.decide(PLACE, one)
            code.glue.our_verdict(one, Fidelity.LINUX)

    return _row(isa, len(space), swept, fast, asked, _seconds(ask))


def measure(isas: Sequence[Isa], scale: Scale) -> Figures:
    """Measure."""
    rows = []
    for isa in isas:
        with tempfile.TemporaryDirectory() as folder:
            swept = _words if isa.registers.link else _bytes
            rows.append(swept(isa, scale, Path(folder)))
    return Figures(
        title="A sweep of the user's decoder",
        columns=("ISA", "encodings", "encodings/s", "one by one", "times", "minutes for all"),
        rows=rows,
        note="Asked by a loop in the emulator, or called from Python for each encoding.  Where instructions are words "
        "the loop also finds the rule of each word and counts; one by one nothing is compared.  On x86 (at most "
        f"{DEFAULT_BOUND} prefix) the answers are compared with the rules in Python, in both.  Times are this "
        "process's own.",
    )
