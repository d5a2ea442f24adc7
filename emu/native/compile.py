"""LLVM: from its assembly language to an object file, which is kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from emu.support.disk_cache import cached


def compiled(kind: str, made_from: bytes, source: Callable[[], str]) -> bytes:
    """Return the object code of `source()`, LLVM's assembly language.

    `source` is called only if the cache has no object code for the same bytes; otherwise neither it
    nor LLVM takes any time. `kind` begins the name of the file in the cache.
    """
    import llvmlite  # noqa: PLC0415  optional

    return cached(kind, f"llvmlite {llvmlite.__version__}\n".encode() + made_from, lambda: _compile(source()))


def _compile(source: str) -> bytes:
    """Return an object file for this host."""
    code: bytes = _target_machine().emit_object(_optimized(source))
    return code


def assembly(source: str) -> tuple[str, str]:
    """Return the source as LLVM has optimized it, and the host's assembly language, for readers."""
    module = _optimized(source)
    return str(module), _target_machine().emit_assembly(module)


def _optimized(source: str) -> Any:
    """Return LLVM's module of its assembly language, checked and optimized for this host."""
    import llvmlite.binding as llvm  # noqa: PLC0415  optional, and 50 ms

    machine = _target_machine()
    module = llvm.parse_assembly(source)
    module.verify()
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    passes.getModulePassManager().run(module, passes)
    return module


@cache
def _target_machine() -> Any:
    """Return LLVM's description of this host's CPU."""
    import llvmlite.binding as llvm  # noqa: PLC0415  optional, and 50 ms

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # Called functions may be anywhere in the address space: symbols are 64-bit addresses in the code.
    return llvm.Target.from_default_triple().create_target_machine(opt=2, codemodel="large", reloc="static")
