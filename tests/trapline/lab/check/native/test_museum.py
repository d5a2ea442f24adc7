"""The museum's bugs are found by machine code as by Python, in the same words."""

from __future__ import annotations

import pytest

from emu.isa.disassembly import Syntax
from emu.native import available
from trapline.framework.base.engines import VARIABLE
from trapline.lab.museum.gallery import exhibits, show


@pytest.mark.skipif(not available(), reason="needs llvmlite")
@pytest.mark.parametrize("name", list(exhibits()))
def test_an_exhibit_is_shown_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []
    for engine in ("native", "reference"):
        monkeypatch.setenv(VARIABLE, engine)
        lines: list[str] = []
        show(name, lines.append, Syntax.INTEL)
        shown.append(lines)
    assert shown[0] == shown[1]
