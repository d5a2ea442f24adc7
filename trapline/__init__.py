"""Trapline: an emulator of probes that patch instructions, on x86-64, AArch64, RISC-V and i386.

The command is `trapline`; this is the same from Python and from notebooks.

    import trapline

    trace = trapline.trace("fbt::malloc:entry { @[execname] = count(); }", isa="riscv64")
    trace.aggregation()                      # {"sh": 41, "cat": 17, ...}
    trapline.sites("testbins:kernel", function="sys_get*")
    trapline.displace("aarch64", "stp x29, x30, [sp, #-16]!; ldxr x1, [x0]")
    trapline.execute("x86_64", "push rbp; mov rbp, rsp", {"rbp": 7}).same
    trapline.check("testbins:zoo", isa="i386", function="fib", run=False).same
    trapline.step("fbt::sys_getpid:entry")
    trapline.bench("fbt", isa="riscv64").rows

Results are plain data; notebooks show them as tables, and play recordings.  Wherever a call cannot
be executed it raises `TraplineError`, whose one line names the cause and the remedy.  Nothing is
imported before it is used: `import trapline` takes a millisecond.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own takes 15 ms, before anything of ours can answer a signal
if TYPE_CHECKING:
    from typing import Any, Final

    from trapline.api import TraplineError
    from trapline.api.bench import Costs, ProgramCost, bench
    from trapline.api.check import Checked, check
    from trapline.api.sites import Sites, displace, execute, sites
    from trapline.api.step import step
    from trapline.api.trace import Trace, trace

__all__ = [
    "Checked",
    "Costs",
    "ProgramCost",
    "Sites",
    "Trace",
    "TraplineError",
    "bench",
    "check",
    "displace",
    "execute",
    "sites",
    "step",
    "trace",
]
__version__: str

# Name -> the module that has it, which is imported when the name is used.
_NAMES: Final = {
    "Checked": "trapline.api.check",
    "Costs": "trapline.api.bench",
    "ProgramCost": "trapline.api.bench",
    "Sites": "trapline.api.sites",
    "Trace": "trapline.api.trace",
    "TraplineError": "trapline.api",
    "bench": "trapline.api.bench",
    "check": "trapline.api.check",
    "displace": "trapline.api.sites",
    "execute": "trapline.api.sites",
    "sites": "trapline.api.sites",
    "step": "trapline.api.step",
    "trace": "trapline.api.trace",
}


def __getattr__(name: str) -> Any:
    """Import what is used; reading `__version__` takes longer than most imports, too."""
    if name in _NAMES:
        from importlib import import_module  # noqa: PLC0415  see above

        from trapline.support.neighbours import intruder  # noqa: PLC0415

        problem = intruder()
        if problem is not None:
            raise ImportError(problem)
        globals()[name] = found = getattr(import_module(_NAMES[name]), name)
        return found
    if name != "__version__":
        raise AttributeError(f"module 'trapline' has no attribute '{name}'")
    from trapline.version import installed_version  # noqa: PLC0415  see above

    return installed_version()


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
