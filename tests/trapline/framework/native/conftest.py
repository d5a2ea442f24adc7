"""Runs of a command with several engines, for tests of machine code."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import suppress

import pytest

from trapline import cli
from trapline.framework.native.upcalls import Upcalls


@pytest.fixture
def shown(monkeypatch, capfd):
    """Run a command with several engines; what it shows, and the upcalls of machine code, by kind and operand."""

    def run(*arguments, engines=("python", "native")):
        asked, called, texts = Counter(), Upcalls._called, []

        def counting(self, which, *operands):
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

    return run
