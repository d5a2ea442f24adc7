"""The common part of the glues for FBT: records, probes, and the answers to breakpoints.

Source: FreeBSD sys/cddl/dev/fbt/fbt.c, illumos usr/src/uts/intel/dtrace/fbt.c.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple, Protocol

from emu.elf.symbols import Symbol
from emu.guest.function import FunctionFaultError
from providers.fbt.port import AssemblyHandler, Exclusion, Refusal
from trapline.lab.objects.decoder.displaced import Handler
from trapline.lab.objects.glue import Glue, extern

RECORD: Final = "fbt_probe_t"
# The largest number of records that one probe may have before its list is taken for a circle.
_MANY: Final = 100_000
_LONGEST_INSTRUCTION: Final = 16
_JUNK: Final = 0x5A5A_5A5A


class ObjectSite(NamedTuple):
    """A record that the code under test has made."""

    probe: str
    address: int
    patch: bytes
    """The bytes that the patcher writes; empty if there is none."""
    rval: int
    roffset: int
    record: int
    """The address of the record in the guest."""
    saved: int = 0
    where: str = ""
    """The call that has created its probe; "" if it is not known."""


class Fired(NamedTuple):
    """A call of dtrace_probe."""

    probe_id: int
    arguments: tuple[int, ...]


class TrapHandler(Handler, Protocol):
    """The code that executes displaced instructions at breakpoints of the kernel."""

    @property
    def name(self) -> str:
        """The function."""
        ...

    @property
    def on_stack(self) -> bool:
        """Whether the trap saves registers on the interrupted stack."""
        ...

    @property
    def answers(self) -> Mapping[int, bytes]:
        """The instructions that it emulates, by the answers of dtrace_invop."""
        ...


class FbtSystem(Glue):
    """The kernel around FBT, as far as it is the same on every system."""

    next_record: ClassVar[str]
    """The member of a record that has the next one of its probe."""
    exclusions: ClassVar[tuple[Exclusion, ...] | None] = None
    """The names that get no probes; None: FreeBSD's of the ISA."""
    first_argument: ClassVar[int]
    """The place of the first argument behind the interrupted stack pointer of `fire`, in words."""
    shares: ClassVar[bool] = True
    """Whether all records of an address may fire (`Port.shares_tracepoints`), or only the newest."""
    assembly: AssemblyHandler | None = None
    """The handler that calls this glue's `dtrace_invop`; None: the user's code has its own."""

    def set_up(self) -> None:
        """Begin without records."""
        self.created: list[tuple[str, int, str]] = []
        self.fired: list[Fired] = []
        self.rvals: dict[int, int] = {}
        """The answers of `dtrace_invop` for addresses: those of the records."""
        self._instructions: dict[int, bytes] = {}
        self._sizes: dict[int, int] = {}
        self._names: dict[str, int] = {}

    def missing(self) -> Iterator[str]:
        """Yield a sentence about each part of the check that the objects have no function for."""
        raise NotImplementedError

    def handler(self) -> TrapHandler | None:
        """Return the user's handler of breakpoints, None if the objects have none."""
        raise NotImplementedError

    def refusal(self, symbol: Symbol) -> Refusal | None:
        """Return the reason why the system gives a function no probes, beside its name and code."""
        _ = symbol
        return None

    def scan(self, symbol: Symbol) -> tuple[list[ObjectSite], bool]:
        """Call the scanner for a function whose bytes are in the guest.

        Returns the records that it has made, and whether it ends the walk of the module.  Raises
        `FunctionFaultError` and `GluePanicError`.
        """
        raise NotImplementedError

    @property
    def patches(self) -> bool:
        """Whether the objects have a patcher."""
        raise NotImplementedError

    def set_patch(self, site: ObjectSite, *, enable: bool) -> None:
        """Write the patch of a record, or what it has saved."""
        raise NotImplementedError

    @property
    def fires(self) -> bool:
        """Whether the objects have the function that fires probes."""
        raise NotImplementedError

    def fire(self, address: int, registers: Mapping[str, int]) -> None:
        """Call the function that fires the probes at an address."""
        raise NotImplementedError

    # -- what fbt.c and dtrace.c offer

    @extern("dtrace_id_t dtrace_probe_create(uintptr_t id, const char *module, const char *function, "
            "const char *name, int aframes, void *record)")  # fmt: skip
    def probe_create(self, _id: int, _module: str, _function: str, name: str, _aframes: int, record: int) -> int:
        """Record the creation of a probe."""
        shadow = self.code.shadow
        self.created.append((name, record, "" if shadow is None else self.code.where(shadow.caller())))
        return len(self.created)

    @extern("void dtrace_probe(dtrace_id_t id, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e)")
    def probe(self, probe_id: int, *arguments: int) -> None:
        """Record that a probe has fired."""
        self.fired.append(Fired(probe_id, arguments))

    @extern("int dtrace_invop(uintptr_t address, void *frame, uintptr_t scratch)")
    def invop(self, address: int, frame: int, scratch: int) -> int:
        """Return what a record says about its instruction, 0 if an address has no record."""
        rval = self.rvals.get(address, 0)
        if self.assembly is not None:
            if rval and rval == self.assembly.pushing:
                self._call(address, frame, scratch)
            for name in self.assembly.clobbered:  # as if it were compiled C
                self.code.guest.engine.write_register(name, _JUNK)
        return rval

    def _call(self, address: int, frame: int, scratch: int) -> None:
        """Prepare a call for a handler that emulates it."""
        raise NotImplementedError

    @extern("int dtrace_instr_size(uint8_t *instruction)")
    def instr_size(self, address: int) -> int:
        """Return an instruction's length, -1 if it does not decode."""
        engine = self.code.guest.engine
        size = self.code.isa.instruction_length(engine.read(address, _LONGEST_INSTRUCTION))
        self.code.load(address, size)  # the shadow memory sees what was needed
        return size or -1

    def _allocate(self, size: int, *, zeroed: bool) -> int:
        """Allocate memory, of known content only if it is zeroed."""
        address = self.code.allocate(size, initialised=zeroed)
        self._sizes[address] = size
        return address

    @extern("void *kmem_alloc(size_t size, int flags)")
    def kmem_alloc(self, size: int, _flags: int) -> int:
        """Allocate memory of unknown content."""
        return self._allocate(size, zeroed=False)

    @extern("void kmem_free(void *memory, size_t size)")
    def kmem_free(self, address: int, _size: int) -> None:
        """Free memory.  Raises `FunctionFaultError` if it is not allocated."""
        size = self._sizes.pop(address, None)
        if address and size is None:
            raise FunctionFaultError(f"free of {address:#x}, which is not allocated", self.code.guest.engine.pc)
        self.code.release(address, size or 0)

    # -- records

    def patched(self, site: ObjectSite, address: int, size: int) -> bytes:
        """Return the function's bytes after its patch, and undo the patch."""
        code = self.code
        before = code.guest.engine.read(address, size)
        with code.showing(address, size, writable=True):
            self.set_patch(site, enable=True)
            after = code.guest.engine.read(address, size)
            self.set_patch(site, enable=False)
        if code.guest.engine.read(address, size) != before:
            code.guest.engine.memory.write(address, before)
            raise FunctionFaultError("the saved value does not restore the instruction", code.guest.engine.pc)
        return after

    def _made(self) -> list[ObjectSite]:
        """Return the records of the probes that were created by the last scan."""
        sites = [site for one in self.created for site in self._records(*one)]
        self.rvals.update((site.address, site.rval) for site in sites)
        return sites

    def answer(self, address: int, record: ObjectSite | None, rval: int, instruction: bytes) -> None:
        """Let `dtrace_invop` give the answer for another instruction at an address."""
        self.rvals[address] = rval
        self._instructions[address] = instruction
        if record is not None:
            self.code.view(RECORD, record.record)["fbtp_rval"] = rval

    def _records(self, probe: str, record: int, where: str) -> Sequence[ObjectSite]:
        found: list[ObjectSite] = []
        while record and len(found) < _MANY:
            view = self.code.view(RECORD, record)
            found.append(
                ObjectSite(probe, view["fbtp_patchpoint"], b"", view["fbtp_rval"], view["fbtp_roffset"], record,
                           view["fbtp_savedval"], where)
            )  # fmt: skip
            record = view[self.next_record]
        return found

    def _text(self, text: str) -> int:
        """Return the address of a string in the guest; it is never freed."""
        if text not in self._names:
            self._names[text] = self.code.allocate(text.encode() + b"\0")
        return self._names[text]
