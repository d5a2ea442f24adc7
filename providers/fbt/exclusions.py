"""The functions that FBT excludes by name.

They belong to DTrace itself, or run while a probe fires.

A probe at any of these would fire inside another probe.  Source: FreeBSD sys/cddl/dev/fbt/fbt.c,
fbt_excluded() and fbt_provide_module().
"""

from __future__ import annotations

from collections.abc import Iterable

from emu.displaced.decision import Rule
from emu.guest.modules import Module
from providers.fbt.port import Exclusion

_FBT = "FreeBSD sys/cddl/dev/fbt/fbt.c"

# The same on every ISA; a `Port` adds its own.
EXCLUSIONS = (
    Exclusion(
        Rule(
            "dtrace_*",
            "DTrace may call it in a probe; functions that are safe to probe are named dtrace_safe_*",
            f"{_FBT}, fbt_excluded",
        ),
        prefix="dtrace_",
        unless="dtrace_safe_",
    ),
    Exclusion(
        Rule("db_*", "the kernel debugger runs in contexts that must not be probed", f"{_FBT}, fbt_excluded"),
        prefix="db_",
    ),
    Exclusion(
        Rule("kdb_*", "the kernel debugger runs in contexts that must not be probed", f"{_FBT}, fbt_excluded"),
        prefix="kdb_",
    ),
    Exclusion(
        Rule("lock owner", "lockstat's and D's mutex_owner() call it in a probe", f"{_FBT}, fbt_excluded"),
        names=frozenset({"owner_mtx", "owner_rm", "owner_rw", "owner_sx"}),
    ),
    Exclusion(
        Rule("fbt_*", "FBT itself, in a kernel that has it built in", f"{_FBT}, fbt_excluded"),
        prefix="fbt_",
    ),
)

# On the ISAs whose stacks are walked by the kernel's shared unwinder: AArch64 and RISC-V.
UNWINDER = Exclusion(
    Rule("unwind_frame", "DTrace walks stacks with it in a probe", f"{_FBT}, fbt_excluded"),
    names=frozenset({"unwind_frame"}),
)

_ILLUMOS_FBT = "illumos usr/src/uts/intel/dtrace/fbt.c, fbt_provide_module"

# The names that illumos excludes.
ILLUMOS_EXCLUSIONS = (
    Exclusion(
        Rule(
            "dtrace_*",
            "DTrace may call it in a probe; functions that are safe to probe are named dtrace_safe_*",
            _ILLUMOS_FBT,
        ),
        prefix="dtrace_",
        unless="dtrace_safe_",
    ),
    Exclusion(
        Rule("kdi_*", "the kernel debugger runs in contexts that must not be probed", _ILLUMOS_FBT), prefix="kdi_"
    ),
    Exclusion(
        Rule("*_kdi_*", "the kernel debugger runs in contexts that must not be probed", _ILLUMOS_FBT), infix="_kdi_"
    ),
    Exclusion(
        Rule("_init and _fini", "the sizes of these symbols are wrong in old drivers", _ILLUMOS_FBT),
        names=frozenset({"_init", "_fini"}),
    ),
)
WEAK_ON_ILLUMOS = Rule("weak symbol", "a weak name and the function behind it would be two probes", _ILLUMOS_FBT)

_DTRACE = "dtrace"

MODULE_IS_DTRACE = Rule("module dtrace", "DTrace itself", f"{_FBT}, fbt_provide_module")
MODULE_NEEDS_DTRACE = Rule(
    "depends on dtrace", "a module that needs dtrace is a DTrace provider", f"{_FBT}, fbt_provide_module"
)


def module_name(file_name: str) -> str:
    """Return the module part of probe names: the linker file's name without a final ".ko"."""
    return file_name[:-3] if len(file_name) > 3 and file_name.endswith(".ko") else file_name


def module_refusal(module: Module) -> Rule | None:
    """Return the rule that denies a whole module its probes, None if it may have some."""
    if module_name(module.name) == _DTRACE:
        return MODULE_IS_DTRACE
    if any(dependency.startswith(_DTRACE) for dependency in module.dependencies):
        return MODULE_NEEDS_DTRACE
    return None


def excluded(name: str, exclusions: Iterable[Exclusion]) -> Exclusion | None:
    """Return the first exclusion that matches a function's name, None if it may be probed."""
    for exclusion in exclusions:
        if exclusion.matches(name):
            return exclusion
    return None
