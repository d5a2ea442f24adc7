"""The ways in which the state of Unicorn's CPUs is reached, and the variable that chooses one."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

# The environment variable that chooses the engine (`trapline.framework.base.engines`); PORTABLE is a value of it.
VARIABLE: Final = "TRAPLINE_ENGINE"


class Mode(StrEnum):
    """The way in which the offsets are known; `emu.unicorn_layout.layout` describes each."""

    TABLE = "table"
    CALIBRATED = "calibrated"
    PORTABLE = "portable"
