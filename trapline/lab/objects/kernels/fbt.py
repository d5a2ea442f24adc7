"""The glue for FBT of FreeBSD: fbt_isa.c, and dtrace_subr.c or dtrace_asm.S, which emulates.

It does what fbt.c and dtrace.c do around them: the table of records, the creation of probes,
excluded names, and the trap.  Source: FreeBSD sys/cddl/dev/fbt/fbt.c, fbt_isa.c of x86, aarch64 and
riscv, sys/cddl/dev/dtrace/<machine>/dtrace_subr.c and dtrace_asm.S.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from emu.elf.symbols import Symbol
from providers.fbt import PORTS
from providers.fbt.exclusions import EXCLUSIONS, UNWINDER, excluded
from trapline.lab.objects.build import Recipe
from trapline.lab.objects.decoder.displaced import Frame
from trapline.lab.objects.glue import extern
from trapline.lab.objects.kernels.fbt_system import RECORD, FbtSystem, ObjectSite
from trapline.lab.objects.structures import View
from trapline.lab.objects.user_code import UserCode

_TABLE_SIZE: Final = 0x8000
_ZERO: Final = 0x100  # M_ZERO
_INT: Final = 0xFFFF_FFFF
_SOURCES: Final = ("fbt_isa.c", "dtrace_subr.c")
# FreeBSD's function for a breakpoint of the kernel: in dtrace_subr.c, or in dtrace_asm.S of x86.
HANDLER: Final = "dtrace_invop_start"
_PATCH: Final = "fbt_patch_tracepoint"
_INVOP: Final = "fbt_invop"
# Functions that may be missing, and what is not done then.
_OPTIONAL: Final = {_PATCH: "patched", _INVOP: "fired", HANDLER: "executed displaced"}
# A register -> the members of a trap frame that may hold it; others are tf_NAME, or tf_LETTERS[NUMBER].
_MEMBERS: Final = {
    "pc": ("tf_elr", "tf_sepc"),
    "rip": ("tf_rip",),
    "eip": ("tf_eip",),
    "esp": ("tf_isp",),
    "fp": (("tf_x", 29), ("tf_s", 0)),
    "lr": ("tf_lr",),
}


class FbtKernel(FbtSystem):
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
    next_record = "fbtp_probenext"
    first_argument = 4  # behind what the CPU has pushed (pc, cs, flags), and the return address

    def set_up(self) -> None:
        """Make the table of records, and call the object's own set-up."""
        super().set_up()
        code = self.code
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
        if code.defines("dtrace_invop_init"):
            code.call("dtrace_invop_init")
            code.call("dtrace_invop_add", code.address("fbt_invop"))

    # -- what fbt.c and dtrace.c offer

    @extern("int fbt_excluded(const char *name)")
    def excluded(self, name: str) -> int:
        """Return whether fbt.c excludes a name."""
        shared = UNWINDER in PORTS[self.code.isa.name].exclusions
        return int(excluded(name, (*EXCLUSIONS, *([UNWINDER] if shared else []))) is not None)

    @extern("void *malloc(size_t size, void *type, int flags)")
    def malloc(self, size: int, _type: int, flags: int) -> int:
        """Allocate memory; its content is known only with M_ZERO."""
        return self._allocate(size, zeroed=bool(flags & _ZERO))

    @extern("void free(void *memory, void *type)")
    def free(self, address: int, _type: int) -> None:
        """Free memory.  Raises `FunctionFaultError` if it is not allocated."""
        self.kmem_free(address, 0)

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

    def missing(self) -> Iterator[str]:
        """Yield a sentence about each part of the check that the objects have no function for."""
        for name, left in _OPTIONAL.items():
            if not self.code.defines(name):
                yield f"{self.code.name} does not define {name}: nothing was {left}"

    def scan(self, symbol: Symbol) -> tuple[list[ObjectSite], bool]:
        """Call the scanner for a function whose bytes are in the guest."""
        code = self.code
        view = code.view("linker_symval_t")
        view["name"] = self._text(symbol.name)
        view["value"] = symbol.value
        view["size"] = symbol.size
        del self.created[:]
        with code.showing(symbol.value, symbol.size):
            result = code.call("fbt_provide_module_function", self._file, 0, view.address, self._text("module"))
        return self._made(), bool(result & _INT)

    @property
    def patches(self) -> bool:
        """Whether the objects have a patcher."""
        return self.code.defines(_PATCH)

    def set_patch(self, site: ObjectSite, *, enable: bool) -> None:
        """Write the patch of a record, or what it has saved."""
        record = self.code.view(RECORD, site.record)
        self.code.call(_PATCH, site.record, record["fbtp_patchval" if enable else "fbtp_savedval"])

    # -- firing

    @property
    def fires(self) -> bool:
        """Whether the objects have the function that fires probes."""
        return self.code.defines(_INVOP)

    def fire(self, address: int, registers: Mapping[str, int]) -> None:
        """Call the function that fires the probes at an address."""
        isa = self.code.isa
        frame = self.frame({**registers, isa.registers.pc: address + isa.traps.pc_after})
        self.code.call(_INVOP, address, frame.address, registers[isa.calling.results[0]])

    def _call(self, address: int, frame: int, scratch: int) -> None:
        """Prepare a direct call, as kinst_invop() does."""
        code, isa = self.code, self.code.isa
        instruction = self._instructions[address]
        after = address + len(instruction)
        code.store(scratch, after.to_bytes(isa.word, "little"))
        saved = code.view("trapframe", frame)
        distance = int.from_bytes(instruction[1:], "little", signed=True)
        saved[frame_key(saved, isa.registers.pc)] = after + distance

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
    name = HANDLER
    on_stack = False
    answers: ClassVar[Mapping[int, bytes]] = {}
    """Empty: the handler reads the displaced instruction itself."""

    def __init__(self, code: UserCode) -> None:
        self._code = code

    def key(self, frame: View, register: str) -> Any:
        """Return the member that holds a register, None if the frame has none for it."""
        return frame_key(frame, register)

    def execute(self, frame: Frame, _address: int, _instruction: bytes) -> str:
        """Execute the instruction of the record for the frame's pc."""
        status = self._code.call(HANDLER, frame.address) & _INT
        return f"their handler does not emulate it: {HANDLER} returns {status - _INT - 1}" if status else ""
