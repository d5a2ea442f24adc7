"""Programs written to files: headers (-h), object files (-G), anonymous tracing (-A).

Source: FreeBSD cmd/dtrace/dtrace.c (link_prog, anon_prog), libdtrace dt_link.c, dt_program.c.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trapline.consumer.errors import SavingError
from trapline.consumer.program.header import header
from trapline.consumer.request import Mode
from trapline.dof import encode
from trapline.dof.elf import object_file
from trapline.dof.layout import OPTIONS
from trapline.framework.base.program import Program

if TYPE_CHECKING:
    from emu.isa import Isa
    from trapline.consumer.program.compile import Compiled
    from trapline.d.check.scopes import DeclaredProbe
    from trapline.options import Options

# Where -A saves programs for -a.
ANONYMOUS: Final = "dtrace.dof"


def _write(path: str, data: bytes, failure: str) -> None:
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise SavingError(f"{failure} '{path}': {error.strerror}") from None


def _beside(compiled: Sequence[Compiled], suffix: str) -> str | None:
    """Return the name of the first script with a suffix instead of `.d`; None: there is none."""
    scripts = [Path(one.source.text) for one in compiled if one.source.kind == "script"]
    return scripts[0].with_suffix(suffix).name if scripts and scripts[0].suffix == ".d" else None


def _together(compiled: Sequence[Compiled]) -> Program:
    model = compiled[0].program.model
    return Program(tuple(ecb for one in compiled for ecb in one.program.ecbs), model=model)


def save(
    mode: Mode,
    compiled: Sequence[Compiled],
    options: Options,
    providers: Mapping[str, Mapping[str, DeclaredProbe]],
    isa: Isa,
    output: str | None,
) -> tuple[str, ...]:
    """Write programs to a file, as -h, -G or -A wants them; return what to tell the user.

    Raises `trapline.consumer.errors.SavingError`.
    """
    if mode is Mode.HEADER:
        _save_header(compiled, providers, output)
        return ()
    if mode is Mode.LINK:
        _save_object(compiled, isa, output, raw=options.text("linktype") == "dof")
        return ()
    path = _save_anonymous(compiled, options.run_time(), output)
    return f"saved anonymous enabling in {path}", "run dtrace -a here to claim it"


def _save_header(
    compiled: Sequence[Compiled], providers: Mapping[str, Mapping[str, DeclaredProbe]], output: str | None
) -> None:
    """Write a C header for provider blocks."""
    path = output or _beside(compiled, ".h")
    if path is None:
        raise SavingError("-h requires a script (-s) with provider definitions, NAME.d or with -o")
    _write(path, header(path, providers).encode(), "failed to open header file")


def _save_object(compiled: Sequence[Compiled], isa: Isa, output: str | None, *, raw: bool) -> None:
    """Write an object file with the DOF of programs, or, `raw`, the DOF alone."""
    dof = encode(_together(compiled))
    path = output or _beside(compiled, ".o") or "d.out"
    _write(path, dof if raw else object_file(dof, isa), "failed to link")


def _save_anonymous(compiled: Sequence[Compiled], options: Mapping[str, int], output: str | None) -> str:
    """Save programs and options for -a; return the path."""
    if not compiled:
        raise SavingError("no probes specified")
    path = output or ANONYMOUS
    wanted = {name: value for name, value in options.items() if name in OPTIONS}
    _write(path, encode(_together(compiled), wanted), "failed to open")
    return path


def saved_anonymous() -> bytes:
    """Return the programs and options that -A has saved.

    Raises `trapline.consumer.errors.SavingError`.
    """
    try:
        return Path(ANONYMOUS).read_bytes()
    except FileNotFoundError:
        raise SavingError(f"no anonymous state: dtrace -A saves it in {ANONYMOUS}") from None
    except OSError as error:
        raise SavingError(f"failed to open '{ANONYMOUS}': {error.strerror}") from None
