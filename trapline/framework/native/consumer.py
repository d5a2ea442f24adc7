"""The machine code of one consumer: its clauses' functions, and their symbols."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from typing import Final

from emu.native.guest import GuestCode
from emu.native.linking import Linked
from emu.plain import WORD, address_of, words
from trapline.framework import dif
from trapline.framework.blocks import LATE_BASE, ConsumerWord, EcbWord
from trapline.framework.buffers import RingBuffer
from trapline.framework.dif import USER_VARIABLE_BASE, Op, Subr
from trapline.framework.ecb import Clause, Ecb, Run
from trapline.framework.native import library
from trapline.framework.native.ecb import ClauseCode
from trapline.framework.native.sharing import share
from trapline.framework.native.support import Support
from trapline.framework.native.translation import Surroundings
from trapline.framework.native.upcalls import Upcalls
from trapline.framework.native.variables import reference_symbol
from trapline.framework.program import Difo, Scope
from trapline.framework.runtime import Runtime

_RUN: Final = ctypes.CFUNCTYPE(ctypes.c_uint64, *(3 * (ctypes.c_uint64,)))
_ARGUMENTS: Final = 5 * ctypes.c_uint64


# Enablings of a clause whose words are made together.
_TOGETHER: Final = 256


class NativeClause:
    """A clause's machine code."""

    def __init__(
        self,
        linked: Linked,
        staging: memoryview[int],
        upcalls: Upcalls,
        intern: Callable[[str], int],
        start: tuple[int, ...],
    ) -> None:
        self.address = linked.address("run")
        """The address of the function."""
        self.start = start
        """What forgets the string of the last firing's strtok(); none if the clause does not use it."""
        self._held = linked, staging
        self._upcalls = upcalls
        self._intern = intern
        self._call = _RUN(self.address)
        self._blocks: dict[int, int] = {}
        """By EPID, the address of an enabling's words."""
        self._memory: list[memoryview[int]] = []

    def words(self, ecb: Ecb) -> int:
        """Return the address of an enabling's words (`EcbWord`)."""
        address = self._blocks.get(ecb.epid)
        if address is None:
            size = EcbWord.AGGREGATIONS + 3 * len(ecb.aggregation_ids)
            number = len(self._blocks) % _TOGETHER
            if not number:
                self._memory.append(words(_TOGETHER * size))
            memory, probe, start = self._memory[-1], ecb.probe, number * size
            names = (probe.provider.name, probe.module, probe.function, probe.name)
            anchored = int(bool(probe.function))
            located = probe.provider.late_arguments(probe.id, probe.arg)
            late = 0 if located is None else LATE_BASE + located
            content = (ecb.epid, probe.id, *map(self._intern, names), anchored, late, *ecb.aggregation_ids)
            for place, word in enumerate(content, start):
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
        support = Support(world.guest.isa, guest, runtime.operations.string_size, len(runtime.speculations.all))
        self.support = frozenset(support.names)
        self.symbols = {
            **self.upcalls.symbols,
            "core": world.core.address,
            "consumer": runtime.block,
            "regions": address_of(world.memory.table),
            "globals": variables.globals.addresses[0],
            "locals": variables.locals.addresses[0],
            "buffer": runtime.buffers[0].address,
            "aggregation": runtime.aggregation_buffers[0].address,
            "random": address_of(runtime.machine.subroutines.random[0].state),
            "speculations": address_of(runtime.speculations.words),
            "record_sizes": address_of(runtime.enabled.sizes),
            "dynamic": runtime.words[ConsumerWord.DYNAMIC],
            **library.symbols(),
        }
        self._support = Linked(support.module.compiled("support"), self.symbols | support.symbols)
        self._memory = support
        self.symbols |= {name: self._support.address(name) for name in support.names}

    @property
    def surroundings(self) -> Surroundings:
        """The properties that determine the code."""
        return Surroundings(self.support, self._runtime.variables.declared)

    def references(self) -> dict[str, int]:
        """Return the symbols of the variables that are kept by reference."""
        variables, found = self._runtime.variables, {}
        for scope, statics in ((Scope.GLOBAL, variables.globals), (Scope.LOCAL, variables.locals)):
            for index, reference in statics.references.items():
                name = reference_symbol(scope, index + USER_VARIABLE_BASE)
                found[name], found[f"{name}.dif"] = reference.region.host, reference.region.base
        return found

    def compile(self, clause: Clause) -> NativeClause | None:
        """Return a clause's machine code; None: there are several CPUs."""
        if self._runtime.world.cpus > 1:
            return None
        runtime = self._runtime
        staged = isinstance(runtime.buffers[0], RingBuffer)
        code = ClauseCode(clause.predicate, clause.layout, self.surroundings, staged=staged)
        own = {f"strings{n}": runtime.functions.string_table(difo) for n, difo in enumerate(code.strings)}
        staging = words(clause.layout.needed // WORD + 1)
        own["staging"] = address_of(staging)
        linked = Linked(code.module.compiled("clause"), self.symbols | self.references() | own)
        start = (self.symbols["forget_tokens"], 0) if _uses_tokens(clause.objects) else ()
        return NativeClause(linked, staging, self.upcalls, runtime.world.memory.intern, start)


def _uses_tokens(objects: Iterable[Difo]) -> bool:
    """Return whether one of some DIF objects calls strtok()."""
    return any(dif.opcode(code) == Op.CALL and dif.index(code) == Subr.STRTOK for difo in objects for code in difo.code)
