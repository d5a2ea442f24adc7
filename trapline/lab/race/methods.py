"""The methods of writing a patch while other CPUs run, and the scripts that enable and disable it.

The bytes of each write come from `emu.probe.patcher.Patcher` itself, through a memory that records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from emu.probe.patcher import Patcher
from emu.probe.text_poke import breakpoint_first
from trapline.lab.race.fork import INHERITED
from trapline.lab.race.operations import (
    Divert,
    Enter,
    Exclude,
    FetchAnew,
    Flush,
    Forget,
    FreeTrampoline,
    Interrupt,
    Learn,
    Leave,
    Link,
    ListProcesses,
    Operation,
    Quiesce,
    Release,
    Returned,
    Script,
    Stop,
    Store,
    Swap,
    WriteChild,
)
from trapline.lab.race.own_handler import Handler
from trapline.lab.race.patch import Patch, RaceError

Write = Callable[[Patch, int, bytes], list[Operation]]


@dataclass(frozen=True, slots=True)
class Method:
    """A way of writing code."""

    write: Write
    """The function of a patch, an address and bytes that returns the operations."""
    what: str
    """A line that describes the method."""
    source: str
    """The systems that write code by this method."""
    framework: bool = True
    """Whether DTrace's (or the kernel's) own cross calls surround it."""
    excludes_forks: bool = False
    """Whether no process can fork between the listing of the processes and the last write."""
    keeps: bool = True
    """Whether what a function needs that is being left stays when its return probe goes."""


@dataclass(frozen=True, slots=True)
class Own:
    """A method that is not one of `METHODS`."""

    name: str
    method: Method
    words: str
    """The words of a replay's line that name it."""
    handler: Handler | None = None
    """The user's own handler of breakpoints; None: the model's, and the provider's."""


def _breakpoint(patch: Patch) -> bytes:
    """Return the shortest breakpoint of the ISA."""
    return patch.isa.traps.breakpoints[-1]


def _once(_patch: Patch, address: int, data: bytes) -> list[Operation]:
    return [Store(address, data), Flush()]


def _early(_patch: Patch, address: int, data: bytes) -> list[Operation]:
    return [Store(address, data), FetchAnew()]


def _bytes(_patch: Patch, address: int, data: bytes) -> list[Operation]:
    return [Store(address, data, whole=False)]


def _synchronized(_patch: Patch, address: int, data: bytes) -> list[Operation]:
    return [Store(address, data), Flush(), Interrupt(synchronize=True)]


def _breakpoint_first(patch: Patch, address: int, data: bytes) -> list[Operation]:
    steps = breakpoint_first(patch.isa, address, data)
    done: list[Operation] = []
    for step in steps:
        done += (Store(*step), Flush(), Interrupt(synchronize=True))
    return done if len(steps) == 1 else [Divert(on=True), *done, Divert(on=False)]


def _quiescent(patch: Patch, address: int, data: bytes) -> list[Operation]:
    """Write a breakpoint that leads past the bytes, then wait, then write as `int3-first`."""
    trap = _breakpoint(patch)
    first: list[Operation] = [Divert(on=True), Store(address, trap), Flush(), Interrupt(synchronize=True), Quiesce()]
    return first + [one for one in _breakpoint_first(patch, address, data) if one != Divert(on=True)]


def _stopped(_patch: Patch, address: int, data: bytes) -> list[Operation]:
    return [Stop(), Store(address, data), Flush(), Release(synchronize=True)]


def _rendezvous(_patch: Patch, address: int, data: bytes) -> list[Operation]:
    return [Stop(), Store(address, data), Flush(), Release(synchronize=False)]


def _page(_patch: Patch, address: int, data: bytes) -> list[Operation]:
    return [Swap(address, data), Flush(), Interrupt(synchronize=True)]


def _entry_late(patch: Patch, address: int, data: bytes) -> list[Operation]:
    """Write first and tell the handler then; the entry of a breakpoint goes before the breakpoint."""
    steps = _breakpoint_first(patch, address, data)
    begins, ends = Divert(on=True), Divert(on=False)
    if begins not in steps:
        return [*steps, Learn()] if data == patch.new else [Forget(), *steps]
    trap, *rest = (one for one in steps if one not in (begins, ends))
    return [trap, begins, *rest[:-3], ends, *rest[-3:]]


METHODS: Final = {
    "write-once": Method(_once, "one store, and what the ISA has for its own caches",
                         "FreeBSD's FBT and kinst (fbt_patch_tracepoint, kinst_patch_tracepoint)"),
    "write-nosync": Method(_once, "the same, without any call to other CPUs",
                           "Linux arm64 jump labels until 2024 (aarch64_insn_patch_text_nosync)", framework=False),
    "write-early": Method(_early, "one store, and the patching CPU alone fetches anew",
                          "Linux x86 before other CPUs run (text_poke_early)", framework=False),
    "write-sync": Method(_synchronized, "one store, then an interrupt that makes all CPUs fetch anew",
                         "Linux x86 kprobes, arm64 jump labels; FreeBSD's fasttrap (vm_sync_icache in proc_rwmem)"),
    "int3-first": Method(_breakpoint_first, "a breakpoint, the other bytes, the first bytes, each with an interrupt",
                         "Linux x86 (text_poke_bp)"),
    "int3-quiesce": Method(_quiescent, "a breakpoint, no thread left in the bytes, then as int3-first",
                           "Linux x86 optimised kprobes (synchronize_rcu_tasks in kprobe_optimizer)"),
    "stop-machine": Method(_stopped, "all CPUs stopped, and each fetches anew before it continues",
                           "Linux arm64 and RISC-V kprobes (stop_machine); this simulator", excludes_forks=True),
    "rendezvous": Method(_rendezvous, "all CPUs stopped, and only the patching CPU sees to its caches",
                         "FreeBSD's SDT (smp_rendezvous in kern_sdt.c)"),
    "new-page": Method(_page, "a copy of the page, and a shootdown of the old translation",
                       "Linux uprobes (uprobe_write_opcode)", excludes_forks=True),
    "entry-late": Method(_entry_late, "the handler learns of a breakpoint too late, and forgets it too early",
                         "no system; wrong on purpose"),
    "no-barrier": Method(_bytes, "byte by byte, and nothing else", "no system; wrong on purpose", framework=False,
                         keeps=False),
}  # fmt: skip
# Provider -> the method of the system that it follows.
USUAL: Final = {
    "fbt": "write-once",
    "kinst": "write-once",
    "sdt": "rendezvous",
    "uprobe": "new-page",
    "pid": "write-sync",
}
# Providers whose handler looks whether a breakpoint that it does not know is still in memory, and if not lets the CPU
# execute the address again (Linux kernel/events/uprobes.c, handle_swbp; illumos dtrace_subr.c, dtrace_user_probe).
LOOKS_AGAIN: Final = frozenset({"uprobe", "pid"})
# The method of this simulator: while the `Patcher` writes, no CPU of the guest runs, and translated code is dropped.
OURS: Final = "stop-machine"


class _Recorder:
    """A memory that records the `Patcher`'s writes.  Implements `emu.probe.patcher.CodeMemory`."""

    def __init__(self, patch: Patch) -> None:
        self._patch = patch
        self._code = bytearray(patch.code)
        self.written: list[tuple[int, bytes]] = []

    def read(self, address: int, size: int) -> bytes:
        offset = address - self._patch.address
        return bytes(self._code[offset : offset + size])

    def write_code(self, address: int, data: bytes) -> None:
        offset = address - self._patch.address
        self._code[offset : offset + len(data)] = data
        self.written.append((address, data))


# The patching CPU executes the code itself.
SELF: Final = "self"
# Scenarios of processes: a fork meanwhile, and a function that is being left.
FORK: Final = "fork"
RETURN: Final = "return"
# Provider -> the scenarios that it has besides those of every patch.
_OF_PROCESSES: Final[dict[str, tuple[str, ...]]] = {"pid": (FORK,), "uprobe": (FORK, RETURN)}
_WHY_NOT: Final = {
    FORK: "only the code of processes is copied by a fork (pid, uprobe)",
    RETURN: "only uprobes lead a return to a trampoline; other return probes are patches at the return itself",
}
# (owner, whether it is enabled) in the order of the requests; the first may be done before the race begins.
_REQUESTS: Final[dict[str, tuple[tuple[int, bool], ...]]] = {
    "enable": ((0, True),),
    "disable": ((0, True), (0, False)),
    "toggle": ((0, True), (0, False)),
    "two": ((0, True), (1, True), (0, False)),
    "unload": ((0, True), (0, False)),
    SELF: ((0, True), (0, False)),
    FORK: ((0, True), (0, False)),
    RETURN: ((0, True), (0, False)),
}
SCENARIOS: Final = {
    "enable": "a probe is enabled",
    "disable": "a probe that is enabled is disabled",
    "toggle": "a probe is enabled and disabled",
    "two": "with a probe enabled, another one on the same instruction is enabled, and the first is disabled",
    "unload": "a probe is disabled and its record freed, as when a module is unloaded",
    SELF: "a probe is enabled and disabled, and after each the patching CPU executes the code itself",
    FORK: "a process forks while its probe is enabled and disabled, and the record is freed (pid, uprobe)",
    RETURN: "a return probe is enabled and disabled, and its record freed, while its function is being left (uprobe)",
}
_FREES: Final = frozenset({"unload", FORK, RETURN})
_ENABLED_BEFORE: Final = frozenset({"disable", "two", "unload"})


@dataclass(frozen=True, slots=True)
class Scripted:
    """A scenario for one patch by one method."""

    script: Script
    patched: bool
    """Whether the first probe is enabled before the race begins."""

    @property
    def known(self) -> bool:
        """Whether the handler's table has the breakpoint's entry before the race begins."""
        return self.patched or Learn() not in self.script


def scenarios(provider: str) -> tuple[str, ...]:
    """Return the scenarios that a provider's patches can have."""
    return tuple(one for one in SCENARIOS if one not in _WHY_NOT or one in _OF_PROCESSES.get(provider, ()))


def plan(patch: Patch, method: Method, scenario: str) -> Scripted:
    """Return the script of a scenario.  Raises `RaceError` if the patch cannot have it."""
    if scenario not in scenarios(patch.provider):
        raise RaceError(f"{patch.name}: no scenario '{scenario}': {_WHY_NOT[scenario]}")
    memory = _Recorder(patch)
    patcher = Patcher(memory)
    points = [patcher.create(patch.site, patch.new, patch.provider) for _ in range(2)]
    before = scenario in _ENABLED_BEFORE
    script: list[Operation] = []
    for number, (owner, enabled) in enumerate(_REQUESTS[scenario]):
        memory.written.clear()
        (patcher.install if enabled else patcher.remove)(points[owner])
        if before and not number:
            continue
        writes = [one for address, data in memory.written for one in method.write(patch, address, data)]
        if scenario == FORK:
            writes = _while_forking(patch, method, writes, patch.new if enabled else patch.old)
        script += _request(owner, writes, enabled=enabled, surrounded=method.framework)
        if scenario == SELF:
            script += (Enter(after_store=_ends_in_store(script)), Leave())
    if scenario in _FREES:
        script.append(Forget())
    if scenario == RETURN and not method.keeps:
        script.append(FreeTrampoline())
    return Scripted(tuple(script), before)


def _ends_in_store(script: Sequence[Operation]) -> bool:
    """Return whether a store is the last operation that is an instruction of the patching CPU.

    What an ISA with coherent caches has for its caches is none.
    """
    return isinstance(next(one for one in reversed(script) if not isinstance(one, Returned | Flush)), Store)


def _while_forking(patch: Patch, method: Method, writes: list[Operation], data: bytes) -> list[Operation]:
    """Write the child's page, too, if the child inherits the probe; exclude forks."""
    done = [ListProcesses(), *writes, WriteChild(data)] if INHERITED[patch.provider] else writes
    return [Exclude(on=True), *done, Exclude(on=False)] if method.excludes_forks else done


def _request(owner: int, writes: list[Operation], *, enabled: bool, surrounded: bool) -> list[Operation]:
    """Surround the writes as DTrace does (dtrace_ecb_enable, dtrace_ecb_disable, dtrace_state_go)."""
    call: list[Operation] = [Interrupt(synchronize=False)] if surrounded else []
    if enabled:
        return [Link(owner, on=True), *writes, *call, Returned(owner, enabled=True)]
    return [Link(owner, on=False), *call, *writes, *call, Returned(owner, enabled=False)]
