"""An engine to experiment with: its structures are located, and short runs are observed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import unicorn
from unicorn.unicorn_py3.unicorn import uclib

from emu.wheel.reading import Reader

# Where the bench has its code and its data.
CODE: Final = 0x10000
DATA: Final = 0x20000
_SIZE: Final = 0x1000
# An address without code.
NOWHERE: Final = 0xFFFF_FFFF_FFFF_FFF0
_WORD: Final = 8
# Bytes of struct uc_struct that are searched, and of the object of a CPU.
_ENGINE: Final = 0x1000
_CPU: Final = 0x20000
# The CPU's pointer to its own registers is near its start; a context's header is short.
_POINTERS: Final = 0x800
_HEADER: Final = 0x80
_PIECE: Final = 4
# Bytes of the registers that are compared with their copy: the general ones are among the first.
_ALIKE: Final = 0x200


class NotFoundError(Exception):
    """An experiment has no answer, or more than one."""


def only(what: str, candidates: Iterable[int]) -> int:
    """Return the only candidate.  Raises `NotFoundError`."""
    found = sorted(set(candidates))
    if len(found) != 1:
        raise NotFoundError(f"{what}: {'no place' if not found else f'{len(found)} places'} fit")
    return found[0]


def places(data: bytes, value: int, size: int) -> set[int]:
    """Return the aligned offsets at which a number of `size` bytes is."""
    wanted = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    found, at = set(), data.find(wanted)
    while at >= 0:
        if at % size == 0:
            found.add(at)
        at = data.find(wanted, at + 1)
    return found


class RegisterRun(NamedTuple):
    """Registers that follow each other as 64-bit words."""

    name: str
    """The fact: the offset of the first."""
    numbers: tuple[int, ...]
    """Unicorn's ids."""
    values: tuple[int, int]
    """What the first holds in two experiments; the others hold a little more."""
    before: int = 0
    """Bytes before the first that belong to the fact: a register that cannot be written."""


@dataclass(frozen=True)
class Subject:
    """What the common experiments need to know of a CPU."""

    name: str
    """Of the part of the layout that is found."""
    architecture: int
    mode: int
    target: str
    """QEMU's name of the CPU, at the end of its functions' names."""
    runs: tuple[RegisterRun, ...]
    traps: tuple[tuple[bytes, int], ...]
    """Code that raises an exception, and its number in Unicorn's hook; two at least."""
    wait: bytes
    """The instruction that waits for an interrupt."""
    nop: bytes
    functions: tuple[str, ...]
    """Names that the library must export."""
    experiments: Callable[[Bench], dict[str, int]]
    """The experiments of this CPU alone."""
    prepare: Callable[[unicorn.Uc], None] = lambda _uc: None


class Snapshot(NamedTuple):
    """What the structures held in the hook of an exception."""

    number: int
    """Of the exception; -1: an invalid instruction."""
    engine: bytes
    cpu: bytes
    env: bytes


class _Found(NamedTuple):
    """A place where the structures may be, as offsets."""

    engine_cpu: int
    cpu_env: int
    cpu_engine: int
    env: int
    size: int
    """Of the registers that are known."""


@dataclass
class Bench:
    """One engine; `round` 0 or 1 chooses the values that the experiments use."""

    subject: Subject
    round: int
    reader: Reader
    facts: dict[str, int] = field(default_factory=dict)
    """The common facts found so far."""

    def __post_init__(self) -> None:
        """Open the engine and locate its structures."""
        self.uc = unicorn.Uc(self.subject.architecture, self.subject.mode)
        self.handle = int(self.uc._uch.value)  # noqa: SLF001  there is no public way to the handle
        self.uc.mem_map(CODE, _SIZE)
        self.uc.mem_map(DATA, _SIZE)
        self.subject.prepare(self.uc)
        self.fits = self._locate()
        """Where the structures may be, until `settle`."""
        self.cpu = self.env = self.env_size = 0
        self.seen: list[Snapshot] = []
        self.on_trap: Callable[[int], None] | None = None
        """Called in the hook of an exception, instead of ending the run."""
        self.uc.hook_add(unicorn.UC_HOOK_INTR, self._trap)
        self.uc.hook_add(unicorn.UC_HOOK_INSN_INVALID, self._invalid)

    # -- memory

    def engine_bytes(self) -> bytes:
        """Return struct uc_struct, as much as can be read."""
        return self.reader.read(self.handle, _ENGINE)

    def cpu_bytes(self) -> bytes:
        """Return the CPU's object up to its registers."""
        return self.reader.read(self.cpu, self.env - self.cpu)

    def env_bytes(self) -> bytes:
        """Return the CPU's registers."""
        return self.reader.read(self.env, self.env_size)

    def write(self, address: int, value: int, size: int = _WORD) -> None:
        """Write a number into memory that was found."""
        ctypes.memmove(address, (value & (1 << 8 * size) - 1).to_bytes(size, "little"), size)

    def function(self, name: str) -> Any:
        """Return an exported function.  Raises `NotFoundError`."""
        try:
            return getattr(uclib, name)
        except AttributeError:
            raise NotFoundError(f"the library does not export {name}") from None

    # -- runs

    def run(self, code: bytes, *, count: int = 0) -> Snapshot | None:
        """Run code from its start until an exception, or until it ends; return the exception.

        An error of `emu_start` is not raised.
        """
        self.uc.mem_write(CODE, code)
        self.uc.ctl_flush_tb()
        self.seen = []
        try:
            self.uc.emu_start(CODE, NOWHERE, 0, count)
        except unicorn.UcError as error:
            self.error = error.errno
        else:
            self.error = unicorn.UC_ERR_OK
        return self.seen[0] if self.seen else None

    def trapped(self, code: bytes) -> Snapshot:
        """Run code that raises an exception.  Raises `NotFoundError` if it does not."""
        found = self.run(code)
        if found is None:
            raise NotFoundError(f"{code.hex()} raises no exception")
        return found

    def _trap(self, uc: unicorn.Uc, number: int, _data: Any) -> None:
        self.seen.append(Snapshot(number, self.engine_bytes(), self.cpu_bytes(), self.env_bytes()))
        if self.on_trap is not None:
            self.on_trap(number)
        else:
            uc.emu_stop()

    def _invalid(self, uc: unicorn.Uc, _data: Any) -> bool:
        self._trap(uc, -1, None)
        return True

    # -- registers

    def found(self, name: str, number: int, values: tuple[int, int], size: int = _WORD) -> int:
        """Return the place in the registers of one that the public call writes.

        Raises `NotFoundError`.
        """
        candidates: set[int] | None = None
        for value in values:
            self.uc.reg_write(number, value)
            here = places(self.env_bytes(), value, size)
            candidates = here if candidates is None else candidates & here
        return only(name, candidates or ())

    def find_run(self, run: RegisterRun) -> int:
        """Return the place of a run's first register.  Raises `NotFoundError`."""
        values = run.values if self.round else run.values[::-1]
        first = self.found(run.name, run.numbers[0], values)
        for place, number in enumerate(run.numbers):
            self.uc.reg_write(number, values[0] + place)
            at = first + _WORD * place
            if self.env_bytes()[at : at + _WORD] != (values[0] + place).to_bytes(_WORD, "little"):
                raise NotFoundError(f"{run.name}: register {number} is not behind the one before it")
        return first - run.before

    # -- where the structures are

    def _locate(self) -> list[_Found]:
        """Return where the structures may be.

        A context is a copy of the registers, behind a short header.  The CPU has a pointer to its
        engine, and one to its registers, which are a part of it.
        """
        run = self.subject.runs[0]
        value = run.values[self.round]
        for number in run.numbers:
            self.uc.reg_write(number, value)
        context = self.uc.context_save()
        copy = self.reader.read(ctypes.cast(context.context, ctypes.c_void_p).value or 0, context.size)
        first = copy.find(value.to_bytes(_WORD, "little"))
        found = []
        for offset, cpu in enumerate(_words(self.engine_bytes())):
            head = self.reader.read(cpu, _POINTERS) if cpu % _WORD == 0 and cpu != self.handle else b""
            for place, env in enumerate(_words(head) if len(head) == _POINTERS else ()):
                if not 0 < env - cpu < _CPU or env % _WORD:
                    continue
                here = self.reader.read(env, len(copy))
                for header in range(0, min(first + 1, _HEADER), _PIECE):
                    if here[:_ALIKE] == copy[header : header + _ALIKE]:
                        backs = places(self.reader.read(cpu, env - cpu), self.handle, _WORD)
                        size = len(copy) - header
                        found += [_Found(_WORD * offset, _WORD * place, back, env - cpu, size) for back in backs]
        return found

    def settle(self, others: Iterable[Bench]) -> None:
        """Keep the place of the CPU that fits in other engines, too.  Raises `NotFoundError`."""
        fits = set(self.fits).intersection(*(other.fits for other in others))
        if len(fits) != 1:
            raise NotFoundError(f"the CPU: {len(fits) or 'no'} places fit")
        (found,) = fits
        self.facts |= {"UC_CPU": found.engine_cpu, "CPU_ENV": found.cpu_env, "CPU_UC": found.cpu_engine}
        self.cpu = self.reader.word(self.handle + found.engine_cpu) or 0
        self.env, self.env_size = self.cpu + found.env, found.size


def _words(data: bytes) -> list[int]:
    return list(memoryview(data[: len(data) & -_WORD]).cast("Q"))
