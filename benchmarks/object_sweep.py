"""The speed of a sweep of a user's compiled decoder, by a loop in the emulator and word by word.

The decoder is `testbins:decoder.o`, for the ISAs whose rules are a table.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.figures import Cell, Figures, Scale
from emu.guest.kernel import images
from emu.isa import Isa
from trapline.lab.objects.linux_uprobes import LinuxUprobesGlue
from trapline.lab.objects.request import RequestError
from trapline.lab.objects.sweep import STRIDE, WORDS, Sweep, loop_object
from trapline.lab.objects.user_code import UserCode

_SWEPT = 1 << 24
_ASKED = 20_000


def _seconds(action: Callable[[], object]) -> float:
    """Return the time of this process that a call takes: other work on the machine does not count."""
    begun = time.process_time()
    action()
    return time.process_time() - begun


def measure(isas: Sequence[Isa], scale: Scale) -> Figures:
    """Measure."""
    rows: list[list[Cell]] = []
    left_out: list[str] = []
    for isa in isas:
        path = images.built(isa) / "objects" / "decoder.o"
        swept, asked = scale.rounds(_SWEPT) // 16 * 16, scale.rounds(_ASKED)
        with tempfile.TemporaryDirectory() as folder:
            code = UserCode([path], LinuxUprobesGlue, isa, checked=False, beside=[loop_object(isa)])
            try:
                sweep = Sweep(code, code.glue.decoder(), Path(folder))
            except RequestError as error:
                left_out.append(f"{isa.name}: {error}")
                continue
            sweep.run(1000)  # its code is translated
            fast = swept / _seconds(lambda: sweep.run(swept))  # noqa: B023  called at once
        slow = asked / _seconds(
            lambda: [
                code.glue.decide(0, (number * STRIDE % WORDS).to_bytes(4, "little"))  # noqa: B023  called at once
                for number in range(asked)  # noqa: B023  called at once
            ]
        )
        rows.append([isa.name, round(fast), round(slow), fast / slow, WORDS / fast / 60])
    return Figures(
        title="A sweep of the user's decoder",
        columns=("ISA", "words/s", "one by one", "times", "minutes for 2^32"),
        rows=rows,
        note="Asked by a loop in the emulator, which also finds the rule of each word and counts; or called from "
        "Python for each word, without comparing.  Times are this process's own.",
        left_out=left_out,
    )
