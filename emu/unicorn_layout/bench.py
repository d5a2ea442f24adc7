"""The engine of an experiment: it locates Unicorn's structures, and observes short runs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import unicorn
from unicorn.unicorn_py3.unicorn import uclib

from emu.unicorn_layout.read import Reader

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
    """Return the aligned offsets of a number of `size` bytes in some data."""
    wanted = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    found, at = set(), data.find(wanted)
    while at >= 0:
        if at % size == 0:
            found.add(at)
        at = data.find(wanted, at + 1)
    return found


def agreed(what: str, experiments: Iterable[set[int]]) -> int:
    """Return the only place that fits in all experiments.  Raises `NotFoundError`."""
    return only(what, set.intersection(*experiments))


def words_of_code(*instructions: int) -> bytes:
    """Return the code of instructions of four bytes."""
    return b"".join(word.to_bytes(4, "little") for word in instructions)


class RegisterRun(NamedTuple):
    """Registers that follow each other as 64-bit words."""

    name: str
    """The name of the fact that is found: the offset of the first register."""
    numbers: tuple[int, ...]
    """Unicorn's ids of the registers."""
    values: tuple[int, int]
    """The values of the first register in two experiments; those of the others are a little
    larger."""
    before: int = 0
    """The number of bytes by which the fact begins earlier: a register that cannot be written."""


@dataclass(frozen=True)
class Subject:
    """The facts about a CPU that the common experiments need."""

    name: str
    """The name of the part of the layout that is found."""
    architecture: int
    mode: int
    target: str
    """QEMU's name of the CPU, at the end of its functions' names."""
    runs: tuple[RegisterRun, ...]
    """The general registers; the program counter is the last."""
    traps: tuple[tuple[bytes, int], ...]
    """Code that raises an exception, with the number that Unicorn's hook gets; at least two."""
    wait: bytes
    """The instruction that waits for an interrupt."""
    nop: bytes
    functions: tuple[str, ...]
    """The names of functions that the library must export."""
    experiments: Callable[[Bench], dict[str, int]]
    """The experiments of this CPU alone."""
    prepare: Callable[[unicorn.Uc], None] = lambda _uc: None
    blocks: Callable[[Bench], dict[str, int]] = lambda _bench: {}
    """The experiments of this CPU that running blocks needs (`emu.unicorn_layout.blocks`)."""
    block_functions: tuple[str, ...] = ()
    """The names of functions that it needs of this CPU alone."""

    @property
    def pc(self) -> int:
        """Unicorn's id of the program counter."""
        return self.runs[-1].numbers[0]


class Snapshot(NamedTuple):
    """The content of the structures when the hook of an exception is called."""

    number: int
    """The number of the exception; -1: an invalid instruction."""
    engine: bytes
    cpu: bytes
    env: bytes


class _Found(NamedTuple):
    """A possible place of the structures, as offsets."""

    engine_cpu: int
    cpu_env: int
    cpu_engine: int
    env: int
    size: int
    """The number of bytes of the registers that are known."""


@dataclass
class Bench:
    """One engine for experiments; `round` (0 or 1) chooses the values that they use."""

    subject: Subject
    round: int
    reader: Reader
    facts: dict[str, int] = field(default_factory=dict)
    """The common facts that have been found."""

    def __post_init__(self) -> None:
        """Open the engine and locate its structures."""
        self.uc = unicorn.Uc(self.subject.architecture, self.subject.mode)
        self.handle = int(self.uc._uch.value)  # noqa: SLF001  there is no public way to the handle
        self.uc.mem_map(CODE, _SIZE)
        self.uc.mem_map(DATA, _SIZE)
        self.subject.prepare(self.uc)
        self.fits = self._locate()
        """The possible places of the structures, until `settle` is called."""
        self.cpu = self.env = self.env_size = 0
        self.seen: list[Snapshot] = []
        self.on_trap: Callable[[int], None] | None = None
        """The function that is called at an exception; None: the exception ends the run."""
        self.uc.hook_add(unicorn.UC_HOOK_INTR, self._trap)
        self.uc.hook_add(unicorn.UC_HOOK_INSN_INVALID, self._invalid)

    # -- memory

    def engine_bytes(self) -> bytes:
        """Return the readable bytes of struct uc_struct."""
        return self.reader.read(self.handle, _ENGINE)

    def cpu_bytes(self) -> bytes:
        """Return the bytes of the CPU's object before its registers."""
        return self.reader.read(self.cpu, self.env - self.cpu)

    def env_bytes(self) -> bytes:
        """Return the bytes of the CPU's registers."""
        return self.reader.read(self.env, self.env_size)

    def write(self, address: int, value: int, size: int = _WORD) -> None:
        """Write a number of `size` bytes to an address in this process."""
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
        """Return the offset of a register, which is found by writing it with the public call.

        Raises `NotFoundError`.
        """

        def fits(value: int) -> set[int]:
            self.uc.reg_write(number, value)
            return places(self.env_bytes(), value, size)

        return agreed(name, map(fits, values))

    def reservation(self, register: int, reserve: bytes, clear: bytes) -> int:
        """Return the offset of the address that an instruction reserves; another clears it to -1.

        `register` has the address for both.  Raises `NotFoundError`.
        """

        def fits(address: int) -> set[int]:
            self.uc.reg_write(register, address)
            self.run(reserve + self.subject.wait)
            held = places(self.env_bytes(), address, _WORD)
            self.run(clear + self.subject.wait)
            return held & places(self.env_bytes(), -1, _WORD)

        return agreed("the reservation", map(fits, (DATA + 0x120, DATA + 0x340)))

    def find_run(self, run: RegisterRun) -> int:
        """Return the offset of a run's first register.  Raises `NotFoundError`."""
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
        """Return the possible places of the structures.

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
        """Keep the place of the CPU that fits in the other engines too.  Raises `NotFoundError`."""
        fits = set(self.fits).intersection(*(other.fits for other in others))
        if len(fits) != 1:
            raise NotFoundError(f"the CPU: {len(fits) or 'no'} places fit")
        (found,) = fits
        self.facts |= {"UC_CPU": found.engine_cpu, "CPU_ENV": found.cpu_env, "CPU_UC": found.cpu_engine}
        self.cpu = self.reader.word(self.handle + found.engine_cpu) or 0
        self.env, self.env_size = self.cpu + found.env, found.size


def _words(data: bytes) -> list[int]:
    return list(memoryview(data[: len(data) & -_WORD]).cast("Q"))
