"""Runs of a command with several engines, and what machine code asks Python in them."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import suppress

import pytest

from trapline import cli
from trapline.framework.native.upcalls import Upcalls

ENGINES = "reference", "native"


def shown_by(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    *arguments: str,
    engines: tuple[str, ...] = ENGINES,
) -> tuple[str, Counter[tuple[int, int]]]:
    """Run `trapline dtrace` with each engine, which show the same.

    Return that, and the upcalls of machine code, by kind and operand.
    """
    asked: Counter[tuple[int, int]] = Counter()
    called, texts = Upcalls._called, []

    def counting(self: Upcalls, which: int, *operands: int) -> int:
        asked[which, operands[0]] += 1
        return called(self, which, *operands)

    monkeypatch.setattr(Upcalls, "_called", counting)
    monkeypatch.setattr(sys, "argv", ["trapline", "dtrace", *arguments])
    for engine in engines:
        monkeypatch.setenv("TRAPLINE_ENGINE", engine)
        with suppress(SystemExit):
            cli.main()
        texts.append(capfd.readouterr())
    assert all(text == texts[0] for text in texts)
    return texts[0].out, asked
