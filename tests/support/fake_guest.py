"""A guest under control of a test: settable time, thread, memory, stacks and symbols."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from emu.guest.base import Abilities, Location, RunState, Thread
from emu.isa import X86_64, Isa
from emu.support.words import BadAddressError
from providers.base import ArgumentDescription, Framework, Provider

KERNEL = 0xFFFF_FFFF_8000_0000
USER = 0x40_0000


SHELL = Thread(address=KERNEL + 0xABC0, tid=100_001, pid=42, ppid=1, execname="sh", execargs="sh\0-c\0ls")


@dataclass
class FakeGuest:
    """A guest without a machine: `run` only lets time pass, `script` says what happens on the way."""

    isa: Isa = X86_64
    cpu: int = 0
    time: int = 1_000
    wall_offset: int = 1_700_000_000_000_000_000
    current: Thread = field(default_factory=lambda: SHELL)
    memory: dict[int, int] = field(default_factory=dict)
    """Kernel memory: a byte by address; anything else is unmapped."""
    user_memory: dict[int, int] = field(default_factory=dict)
    stack: list[int] = field(default_factory=list)
    ustack: list[int] = field(default_factory=list)
    symbols: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Kernel symbols: (module, name) by address; an address belongs to the last symbol not above
    it."""
    user_symbols: dict[int, tuple[str, str]] = field(default_factory=dict)
    script: list[tuple[int, Any]] = field(default_factory=list)
    """(time, callable) in order: what `run` does when that time comes."""
    interrupts: int = 0
    thread_reads: int = 0
    abilities: Abilities = field(default_factory=Abilities)

    def now(self) -> int:
        return self.time

    def wall(self) -> int:
        return self.wall_offset + self.time

    def thread(self) -> Thread:
        self.thread_reads += 1
        return self.current

    def load(self, address: int, size: int) -> bytes:
        return self._read(self.memory, address, size)

    def user_load(self, address: int, size: int) -> bytes:
        return self._read(self.user_memory, address, size)

    def user_store(self, address: int, data: bytes) -> None:
        self._read(self.user_memory, address, len(data))
        self.user_memory.update(zip(range(address, address + len(data)), data, strict=True))

    def kernel_stack(self) -> list[int]:
        return self.stack

    def user_stack(self) -> list[int]:
        return self.ustack

    def locate(self, address: int) -> Location | None:
        return self._locate(self.symbols, address)

    def locate_user(self, address: int, pid: int | None = None) -> Location | None:
        return self._locate(self.user_symbols, address)

    def run(self, deadline: int | None) -> RunState:
        """Do what the script says up to the deadline; without more script the guest is finished."""
        seen = self.interrupts
        while self.script and (deadline is None or self.script[0][0] <= deadline):
            time, action = self.script.pop(0)
            self.time = max(self.time, time)
            action()
            if self.interrupts != seen:
                return RunState.RUNNING
        if not self.script:
            return RunState.FINISHED
        self.time = max(self.time, deadline or 0)
        return RunState.RUNNING

    def interrupt(self) -> None:
        self.interrupts += 1

    def poke(self, address: int, data: bytes) -> int:
        """Map kernel memory at `address` and return the address."""
        self.memory.update(zip(range(address, address + len(data)), data, strict=True))
        return address

    def poke_user(self, address: int, data: bytes) -> int:
        """Map user memory at `address` and return the address."""
        self.user_memory.update(zip(range(address, address + len(data)), data, strict=True))
        return address

    def become(self, **changes: Any) -> None:
        """Switch to a thread like the current one, but for `changes`."""
        self.current = replace(self.current, **changes)

    @staticmethod
    def _read(memory: dict[int, int], address: int, size: int) -> bytes:
        found = bytearray()
        for place in range(address, address + size):
            if place not in memory:
                raise BadAddressError(place)
            found.append(memory[place])
        return bytes(found)

    @staticmethod
    def _locate(symbols: dict[int, tuple[str, str]], address: int) -> Location | None:
        below = [start for start in symbols if start <= address]
        if not below:
            return None
        start = max(below)
        return Location(*symbols[start], address - start)


class FakeProvider(Provider):
    """A provider whose probes are fired by the test; it remembers what is enabled."""

    def __init__(self, framework: Framework, name: str = "test") -> None:
        self.name = name
        self.framework = framework
        self.enabled: list[int] = []
        self.destroyed: list[int] = []
        self.user_probes: set[int] = set()
        self.values: dict[int, int] = {}
        """Values of arguments 5 and up."""
        framework.register(self)

    def create(self, module: str, function: str, name: str, aframes: int = 0) -> int:
        """Create a probe and return its id."""
        return self.framework.probe_create(self, module, function, name, aframes, arg=f"{function}:{name}")

    def fire(self, probe_id: int, *args: int) -> None:
        self.framework.probe(probe_id, *args)

    def enable(self, probe_id: int, arg: Any) -> None:
        self.enabled.append(probe_id)

    def disable(self, probe_id: int, arg: Any) -> None:
        self.enabled.remove(probe_id)

    def destroy(self, probe_id: int, arg: Any) -> None:
        self.destroyed.append(probe_id)

    def argument_description(self, probe_id: int, arg: Any, index: int) -> ArgumentDescription | None:
        return ArgumentDescription(index, "int64_t") if index < 5 else None

    def argument_value(self, probe_id: int, arg: Any, index: int) -> int | None:
        return self.values.get(index)

    def usermode(self, probe_id: int, arg: Any) -> bool:
        return probe_id in self.user_probes
