"""The machine code of one consumer: its clauses' functions, and their symbols."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from emu.native.guest import GuestCode
from emu.native.link import Linked
from emu.support.plain import WORD, address_of, words
from trapline.framework.base import dif
from trapline.framework.base.blocks import ConsumerWord
from trapline.framework.base.dif import USER_VARIABLE_BASE, Op, Subr
from trapline.framework.base.program import Difo, Scope
from trapline.framework.buffers.buffers import RingBuffer
from trapline.framework.dif.builtin import HOST_JAIL
from trapline.framework.native import library
from trapline.framework.native.aggregate import SharedAggregationBuffer
from trapline.framework.native.by_cpu import by_cpu, ecb_size
from trapline.framework.native.dif.dynvars import SharedDynamicVariables
from trapline.framework.native.dif.translation import Surroundings
from trapline.framework.native.dif.variables import reference_symbol
from trapline.framework.native.ecb import ClauseCode
from trapline.framework.native.support import Support
from trapline.framework.native.upcalls import Upcalls
from trapline.framework.probe.ecb import Clause, Ecb, Run
from trapline.framework.probe.runtime import Runtime

_RUN: Final = ctypes.CFUNCTYPE(ctypes.c_uint64, *(3 * (ctypes.c_uint64,)))
_ARGUMENTS: Final = 5 * ctypes.c_uint64


# Enablings of a clause whose words are made together.
_TOGETHER: Final = 256


class NativeClause:
    """A clause's machine code.

    `symbols` are those of the support of each CPU (`NativeConsumer.symbols`).  `linked` has the
    function of each CPU, and before them, if there are several, the one that selects one of them.
    """

    def __init__(
        self,
        linked: Sequence[Linked],
        symbols: Sequence[Mapping[str, int]],
        staging: memoryview[int],
        upcalls: Upcalls,
        intern: Callable[[str], int],
        start: tuple[int, ...],
    ) -> None:
        self.address = linked[0].address("run")
        """The address of the function."""
        self.start = start
        """What forgets the string of the last firing's strtok(); none if the clause does not use it."""
        self._held = linked, staging
        self._symbols = symbols
        self._upcalls = upcalls
        self._intern = intern
        self._call = _RUN(self.address)
        self._blocks: dict[int, int] = {}
        """By EPID, the address of an enabling's words."""
        self._memory: list[memoryview[int]] = []

    def words(self, ecb: Ecb) -> int:
        """Return the address of an enabling's words (`EcbWord`) of the first CPU.

        Those of the other CPUs follow: each has found its values in its own aggregations.
        """
        address = self._blocks.get(ecb.epid)
        if address is None:
            size = ecb_size(len(ecb.aggregation_ids))
            number, cpus = len(self._blocks) % _TOGETHER, len(self._symbols)
            if not number:
                self._memory.append(words(_TOGETHER * size * cpus))
            memory, probe, start = self._memory[-1], ecb.probe, number * size * cpus
            names = (probe.provider.name, probe.module, probe.function, probe.name)
            anchored = int(bool(probe.function))
            late = probe.provider.late_arguments(probe.id, probe.arg)
            content = (ecb.epid, probe.id, *map(self._intern, names), anchored)
            for cpu, symbols in enumerate(self._symbols):
                for place, word in enumerate((*content, symbols[late], *ecb.aggregation_ids), start + cpu * size):
                    memory[place] = word
            address = self._blocks[ecb.epid] = address_of(memory) + WORD * start
        return address

    def run(self, ecb: Ecb) -> Run:
        """Return what fires an enabling from Python."""
        call, upcalls, block = self._call, self._upcalls, self.words(ecb)

        def run(args: tuple[int, ...]) -> None:
            place = _ARGUMENTS(*args)
            before = upcalls.begin()
            call(block, ctypes.addressof(place), 0)
            if before is not None or upcalls.failure is not None:
                upcalls.end(before)

        def run_with_tokens(args: tuple[int, ...]) -> None:
            place = _ARGUMENTS(*args)
            before = upcalls.begin()
            upcalls.take_tokens(args)
            call(block, ctypes.addressof(place), 0)
            upcalls.give_tokens(args)
            upcalls.end(before)

        return run_with_tokens if self.start else run


class NativeConsumer:
    """Compiles the clauses of one consumer, when each is worth it; tracing has begun by then."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        share(runtime)
        self.upcalls = Upcalls(runtime)
        world, variables = runtime.world, runtime.variables
        machine_code = runtime.world.abilities.machine_code
        guest = GuestCode() if machine_code is None else machine_code()
        self._cpus = world.cpus
        # With several CPUs a speculation has a buffer of each: Python does what is done to it.
        speculations = len(runtime.speculations.all) if self._cpus == 1 else 0
        support = Support(world.guest.isa, guest, runtime.operations.string_size, speculations)
        self.support = frozenset(support.names)
        common = {
            **self.upcalls.symbols,
            "core": world.core.address,
            "consumer": runtime.block,
            "jail_name": world.memory.intern(HOST_JAIL),
            "regions": address_of(world.memory.table),
            "globals": variables.globals.addresses[0],
            "speculations": address_of(runtime.speculations.words),
            "record_sizes": address_of(runtime.enabled.sizes),
            "dynamic": runtime.words[ConsumerWord.DYNAMIC],
            **library.symbols(),
            **support.symbols,
        }
        self._memory = support
        code = support.module.compiled("support")
        self._support: list[Linked] = []
        self.symbols: list[dict[str, int]] = []
        """The symbols of each CPU's code: only one CPU runs at a time, so most are the same."""
        for cpu in range(self._cpus):
            symbols = common | self._symbols_of(cpu)
            self._support.append(Linked(code, symbols))
            self.symbols.append(symbols | {name: self._support[-1].address(name) for name in support.names})

    @property
    def surroundings(self) -> Surroundings:
        """The properties that determine the code."""
        return Surroundings(self.support, self._runtime.variables.declared)

    def _symbols_of(self, cpu: int) -> dict[str, int]:
        """Return the symbols of what each CPU has for itself."""
        runtime = self._runtime
        return {
            "locals": runtime.variables.locals.addresses[cpu],
            "buffer": runtime.buffers[cpu].address,
            "aggregation": runtime.aggregation_buffers[cpu].address,
            "random": address_of(runtime.machine.subroutines.random[cpu].state),
        }

    def references(self, cpu: int) -> dict[str, int]:
        """Return the symbols of the variables that are kept by reference, with a CPU's own locals."""
        variables, found = self._runtime.variables, {}
        for scope, statics, copy in ((Scope.GLOBAL, variables.globals, 0), (Scope.LOCAL, variables.locals, cpu)):
            for index, reference in statics.references.items():
                name, start = reference_symbol(scope, index + USER_VARIABLE_BASE), copy * reference.stride
                found[name], found[f"{name}.dif"] = reference.region.host + start, reference.region.base + start
        return found

    def compile(self, clause: Clause) -> NativeClause | None:
        """Return a clause's machine code; None: machine code cannot tell which CPU runs."""
        if self._cpus > 1 and "cpu" not in self.support:
            return None
        runtime = self._runtime
        staged = isinstance(runtime.buffers[0], RingBuffer)
        code = ClauseCode(clause.predicate, clause.layout, self.surroundings, staged=staged)
        own = {f"strings{n}": runtime.machine.string_table(difo) for n, difo in enumerate(code.strings)}
        staging = words(clause.layout.needed // WORD + 1)
        own["staging"] = address_of(staging)
        compiled = code.module.compiled("clause")
        linked = [Linked(compiled, symbols | self.references(cpu) | own) for cpu, symbols in enumerate(self.symbols)]
        if self._cpus > 1:
            aggregating = sum(placed.aggregating is not None for placed in clause.layout.actions)
            linked.insert(0, by_cpu(linked, WORD * ecb_size(aggregating), self.symbols[0]))
        start = (self.symbols[0]["forget_tokens"], 0) if _uses_tokens(clause.objects) else ()
        return NativeClause(linked, self.symbols, staging, self.upcalls, runtime.world.memory.intern, start)


def _uses_tokens(objects: Iterable[Difo]) -> bool:
    """Return whether one of some DIF objects calls strtok()."""
    return any(dif.opcode(code) == Op.CALL and dif.index(code) == Subr.STRTOK for difo in objects for code in difo.code)


def share(runtime: Runtime) -> None:
    """Replace Python's own memory by memory that is shared with machine code.

    Tracing has begun.  Stored data remain; Python continues to use them by the same functions.
    """
    for cpu, old in enumerate(runtime.aggregation_buffers):
        shared = runtime.aggregation_buffers[cpu] = SharedAggregationBuffer(len(old.data), old)
        runtime.aggregation_addresses[cpu] = shared.address
    dynamic = runtime.variables.dynamic = SharedDynamicVariables(runtime.variables.dynamic)
    runtime.words[ConsumerWord.DYNAMIC] = dynamic.address
