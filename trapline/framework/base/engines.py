"""The choice between the two engines for clauses of D, which give the same results.

| engine | code that runs when a probe fires |
| --- | --- |
| `native` | machine code, made from DIF by LLVM; operations without a native form run in Python |
| `reference` | the DIF machine (`trapline.framework.dif.interpreter`), an instruction at a time |

The environment variable TRAPLINE_ENGINE chooses; without it the first one that can run here does.
In that case a clause starts as a Python function, which needs no compilation, and becomes machine
code when it has fired often enough to be worth compiling.
"""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Final

from emu.native import available, missing

# The environment variable that chooses the engine.
VARIABLE: Final = "TRAPLINE_ENGINE"
# A clause is compiled to machine code after this number of firings, which took as long as the compilation takes.
_WORTH: Final = 1000


class ProgramEngine(StrEnum):
    """An engine for clauses, by its name in TRAPLINE_ENGINE."""

    NATIVE = "native"
    REFERENCE = "reference"


class EngineError(ValueError):
    """TRAPLINE_ENGINE names an unknown engine, or one that cannot run here."""


def chosen() -> ProgramEngine:
    """Return the engine that runs.  Raises `EngineError`."""
    name = os.environ.get(VARIABLE)
    if not name:
        return ProgramEngine.NATIVE if available() else ProgramEngine.REFERENCE
    try:
        engine = ProgramEngine(name)
    except ValueError:
        known = ", ".join(ProgramEngine)
        raise EngineError(f"{VARIABLE}: '{name}' is not an engine; there are {known}") from None
    if engine is ProgramEngine.NATIVE and not available():
        raise EngineError(f"{VARIABLE}: the engine 'native' needs llvmlite: pip install llvmlite")
    return engine


def worth_compiling(engine: ProgramEngine, *, asked: bool) -> int:
    """Return the number of firings after which a clause becomes machine code; 0: never.

    It is the first one if the engine was `asked` for, here or in the environment.
    """
    if engine is not ProgramEngine.NATIVE:
        return 0
    return 1 if asked or os.environ.get(VARIABLE) else _WORTH


def described(engine: ProgramEngine) -> str:
    """Describe an engine in a few words."""
    return {
        ProgramEngine.NATIVE: "native (machine code by LLVM)",
        ProgramEngine.REFERENCE: "reference (the DIF machine)" + (f", since {missing()}" if missing() else ""),
    }[engine]
