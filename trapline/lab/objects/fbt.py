"""The glue for FBT of FreeBSD: fbt_isa.c, and dtrace_subr.c or dtrace_asm.S, which emulates.

It does what fbt.c and dtrace.c do around them: the table of records, the creation of probes,
excluded names, and the trap.  Source: FreeBSD sys/cddl/dev/fbt/fbt.c, fbt_isa.c of x86, aarch64 and
riscv, sys/cddl/dev/dtrace/<machine>/dtrace_subr.c and dtrace_asm.S.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from emu.guest.function import FunctionFaultError
from providers.fbt import PORTS
from providers.fbt.exclusions import EXCLUSIONS, UNWINDER, excluded
from providers.fbt.port import AssemblyHandler
from trapline.lab.objects.building import Recipe
from trapline.lab.objects.displaced import Frame
from trapline.lab.objects.glue import Glue, extern
from trapline.lab.objects.structures import View
from trapline.lab.objects.user_code import UserCode

_TABLE_SIZE: Final = 0x8000
_PROBE: Final = "fbt_probe_t"
# The largest number of records that one probe may have before its list is taken for a circle.
_MANY: Final = 100_000
_LONGEST_INSTRUCTION: Final = 16
_INT: Final = 0xFFFF_FFFF
_SOURCES: Final = ("fbt_isa.c", "dtrace_subr.c")
_JUNK: Final = 0x5A5A_5A5A
# FreeBSD's function for a breakpoint of the kernel: in dtrace_subr.c, or in dtrace_asm.S of x86.
HANDLER: Final = "dtrace_invop_start"
# A register -> the members of a trap frame that may hold it; others are tf_NAME, or tf_LETTERS[NUMBER].
_MEMBERS: Final = {
    "pc": ("tf_elr", "tf_sepc"),
    "rip": ("tf_rip",),
    "eip": ("tf_eip",),
    "esp": ("tf_isp",),
    "fp": (("tf_x", 29), ("tf_s", 0)),
    "lr": ("tf_lr",),
}


class ObjectSite(NamedTuple):
    """A record that the code under test has made."""

    probe: str
    address: int
    patch: bytes
    """The bytes that `fbt_patch_tracepoint` writes; empty if it is not defined."""
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


class FbtKernel(Glue):
    """The kernel around FBT."""

    entries = ("fbt_provide_module_function",)
    recipe = Recipe("freebsd", _SOURCES, variants={"x86": (*_SOURCES, "dtrace_asm.S")})
    data: ClassVar[Mapping[str, int]] = {
        "fbt_probetab": 8,
        "fbt_probetab_mask": 4,
        "fbt_id": 8,
        "M_FBT": 256,
        "solaris_cpu": 4096,
        "cpu_core": 4096,
        "trapline_thread": 256,
        "all_cpus": 128,
        "dtrace_probeid_error": 4,
        "dtrace_invop_jump_addr": 8,
        "dtrace_invop_calltrap_addr": 8,
        "vm_guest": 4,
        "tsc_freq": 8,
        "la57": 4,
        "addr_P4Tmap": 8,
        "addr_P5Tmap": 8,
        "kernelbase": 8,
    }
    assembly: AssemblyHandler | None = None
    """The handler that calls this glue's `dtrace_invop`; None: the user's code has its own."""

    def set_up(self) -> None:
        """Make the table of records, and call the object's own set-up."""
        code = self.code
        self.created: list[tuple[str, int, str]] = []
        self.fired: list[Fired] = []
        self._sizes: dict[int, int] = {}
        self.rvals: dict[int, int] = {}
        """The answers of `dtrace_invop` for addresses: those of the records."""
        self._instructions: dict[int, bytes] = {}
        self.faulting = 0
        """What the CPU says about the address of a page fault (i386)."""
        word = code.isa.word
        self._table = code.allocate(_TABLE_SIZE * word)
        for name, value, size in (
            ("fbt_probetab", self._table, word), ("fbt_probetab_mask", _TABLE_SIZE - 1, 4), ("fbt_id", 1, word)
        ):  # fmt: skip
            if code.image.defines(name):
                code.store(code.address(name), value.to_bytes(size, "little"))
        file = code.view("linker_file")
        if file.has("loadcnt"):
            file["loadcnt"] = 1
        self._file = file.address
        self._names: dict[str, int] = {}
        if code.defines("dtrace_invop_init"):
            code.call("dtrace_invop_init")
            code.call("dtrace_invop_add", code.address("fbt_invop"))

    # -- what fbt.c and dtrace.c offer

    @extern("int fbt_excluded(const char *name)")
    def excluded(self, name: str) -> int:
        """Return whether fbt.c excludes a name."""
        shared = UNWINDER in PORTS[self.code.isa.name].exclusions
        return int(excluded(name, (*EXCLUSIONS, *([UNWINDER] if shared else []))) is not None)

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
        """Prepare a direct call, as kinst_invop() does."""
        code, isa = self.code, self.code.isa
        instruction = self._instructions[address]
        after = address + len(instruction)
        code.store(scratch, after.to_bytes(isa.word, "little"))
        saved = code.view("trapframe", frame)
        distance = int.from_bytes(instruction[1:], "little", signed=True)
        saved[frame_key(saved, isa.registers.pc)] = after + distance

    @extern("int dtrace_instr_size(uint8_t *instruction)")
    def instr_size(self, address: int) -> int:
        """Return an instruction's length, -1 if it does not decode."""
        engine = self.code.guest.engine
        size = self.code.isa.instruction_length(engine.read(address, _LONGEST_INSTRUCTION))
        self.code.load(address, size)  # the shadow memory sees what was needed
        return size or -1

    @extern("void *malloc(size_t size, void *type, int flags)")
    def malloc(self, size: int, _type: int, flags: int) -> int:
        """Allocate memory; its content is known only with M_ZERO."""
        address = self.code.allocate(size, initialised=bool(flags & 0x100))
        self._sizes[address] = size
        return address

    @extern("void *kmem_alloc(size_t size, int flags)")
    def kmem_alloc(self, size: int, _flags: int) -> int:
        """Allocate memory of unknown content."""
        return self.malloc(size, 0, 0)

    @extern("void free(void *memory, void *type)")
    def free(self, address: int, _type: int) -> None:
        """Free memory.  Raises `FunctionFaultError` if it is not allocated."""
        size = self._sizes.pop(address, None)
        if address and size is None:
            raise FunctionFaultError(f"free of {address:#x}, which is not allocated", self.code.guest.engine.pc)
        self.code.release(address, size or 0)

    @extern("void kmem_free(void *memory, size_t size)")
    def kmem_free(self, address: int, _size: int) -> None:
        """Free memory."""
        self.free(address, 0)

    @extern("long intr_disable(void)")
    def intr_disable(self) -> int:
        """Do nothing: there are no interrupts."""
        return 0

    @extern("void intr_restore(long state)")
    def intr_restore(self, _state: int) -> None:
        """Do nothing."""

    @extern("bool disable_wp(void)")
    def disable_wp(self) -> int:
        """Do nothing: the code is writable while it is patched."""
        return 0

    @extern("void restore_wp(bool state)")
    def restore_wp(self, _state: int) -> None:
        """Do nothing."""

    @extern("bool arm64_get_writable_addr(uintptr_t address, uintptr_t *writable)")
    def writable_address(self, address: int, writable: int) -> int:
        """Return the address itself, because the code is writable."""
        self.code.store(writable, address.to_bytes(self.code.isa.word, "little"))
        return 1

    @extern("void cpu_icache_sync_range(uintptr_t address, size_t size)")
    def icache_sync(self, _address: int, _size: int) -> None:
        """Do nothing."""

    @extern("void smp_rendezvous_cpus(uintptr_t cpus)")
    def rendezvous(self, _cpus: int) -> None:
        """Do nothing: there is one CPU."""

    @extern("void smp_no_rendezvous_barrier(void *argument)")
    def no_barrier(self, _argument: int) -> None:
        """Do nothing."""

    @extern("void *pcpu_find(unsigned int cpu)")
    def find_cpu(self, _cpu: int) -> int:
        """Return nothing: there is one CPU, and no other is looked for."""
        return 0

    @extern("unsigned int rcr2(void)")
    def fault_address(self) -> int:
        """Return the address of a page fault."""
        return self.faulting

    @extern("void dtrace_getnanotime(void *time)")
    def getnanotime(self, _time: int) -> None:
        """Do nothing."""

    @extern("void dtrace_getnanouptime(void *time)")
    def getnanouptime(self, _time: int) -> None:
        """Do nothing."""

    # -- scanning and patching

    def scan(self, name: str, address: int, size: int) -> tuple[list[ObjectSite], int]:
        """Call the scanner for a function whose bytes are in the guest.

        Returns the records that it has made, and its result: not 0 ends the walk of a module.
        Raises `FunctionFaultError` and `GluePanicError`.
        """
        code = self.code
        symbol = code.view("linker_symval_t")
        symbol["name"] = self._text(name)
        symbol["value"] = address
        symbol["size"] = size
        del self.created[:]
        with code.showing(address, size):
            result = code.call("fbt_provide_module_function", self._file, 0, symbol.address, self._text("module"))
        sites = [site for one in self.created for site in self._records(*one)]
        self.rvals.update((site.address, site.rval) for site in sites)
        return sites, result & 0xFFFF_FFFF

    def patched(self, site: ObjectSite, address: int, size: int) -> bytes:
        """Return the function's bytes after `fbt_patch_tracepoint`, and undo the patch."""
        code = self.code
        record = code.view(_PROBE, site.record)
        before = code.guest.engine.read(address, size)
        with code.showing(address, size, writable=True):
            code.call("fbt_patch_tracepoint", site.record, record["fbtp_patchval"])
            after = code.guest.engine.read(address, size)
            code.call("fbt_patch_tracepoint", site.record, record["fbtp_savedval"])
        if code.guest.engine.read(address, size) != before:
            code.guest.engine.memory.write(address, before)
            raise FunctionFaultError(
                "the saved value does not restore the instruction", code.address("fbt_patch_tracepoint")
            )
        return after

    def answer(self, address: int, record: ObjectSite | None, rval: int, instruction: bytes) -> None:
        """Let `dtrace_invop` give the answer for another instruction at an address."""
        self.rvals[address] = rval
        self._instructions[address] = instruction
        if record is not None:
            self.code.view(_PROBE, record.record)["fbtp_rval"] = rval

    def _records(self, probe: str, record: int, where: str) -> Sequence[ObjectSite]:
        found: list[ObjectSite] = []
        while record and len(found) < _MANY:
            view = self.code.view(_PROBE, record)
            found.append(
                ObjectSite(probe, view["fbtp_patchpoint"], b"", view["fbtp_rval"], view["fbtp_roffset"], record,
                           view["fbtp_savedval"], where)
            )  # fmt: skip
            record = view["fbtp_probenext"]
        return found

    def _text(self, text: str) -> int:
        """Return the address of a string in the guest; it is never freed."""
        if text not in self._names:
            self._names[text] = self.code.allocate(text.encode() + b"\0")
        return self._names[text]

    # -- firing

    def frame(self, registers: Mapping[str, int]) -> View:
        """Return a trap frame with these registers."""
        frame = self.code.view("trapframe")
        for name, value in registers.items():
            key = frame_key(frame, name)
            if key is not None:
                frame[key] = value
        return frame


def frame_key(frame: View, register: str) -> Any:
    """Return the member of a FreeBSD trap frame that holds a register, None if it has none."""
    candidates: Sequence[Any] = _MEMBERS.get(register, (f"tf_{register}",))
    letters = register.rstrip("0123456789")
    for key in candidates:
        if frame.has(key[0] if isinstance(key, tuple) else key):
            return key
    if letters != register and frame.has(f"tf_{letters}"):
        return f"tf_{letters}", int(register[len(letters) :])
    return None


class FbtHandler:
    """The handler of dtrace_subr.c for a breakpoint of the kernel."""

    frame = "trapframe"
    answers: ClassVar[Mapping[int, bytes]] = {}
    """It reads the displaced instruction itself."""

    def __init__(self, code: UserCode) -> None:
        self._code = code

    def key(self, frame: View, register: str) -> Any:
        """Return the member that holds a register, None if the frame has none for it."""
        return frame_key(frame, register)

    def execute(self, frame: Frame, _address: int, _instruction: bytes) -> str:
        """Execute the instruction of the record for the frame's pc."""
        status = self._code.call(HANDLER, frame.address) & _INT
        return f"their handler does not emulate it: {HANDLER} returns {status - _INT - 1}" if status else ""
