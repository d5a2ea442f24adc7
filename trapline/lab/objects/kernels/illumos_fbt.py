"""The glue for FBT of illumos on x86: fbt.c, dtrace_subr.c, and the traps of exception.S.

fbt.c is a driver whose functions are static: they are reached as the kernel reaches them.  The
driver is installed and attached, and then it has registered the functions of its provider, and its
handler of breakpoints.  A module with one function in its table of symbols is given to it at a
time.  Source: illumos usr/src/uts/intel/dtrace/fbt.c, usr/src/uts/i86pc/os/dtrace_subr.c,
usr/src/uts/intel/ml/exception.S, usr/src/uts/common/sys/dtrace.h, usr/src/uts/common/sys/modctl.h.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from emu.elf.symbols import Binding, Symbol
from providers.fbt import PORTS
from providers.fbt.exclusions import ILLUMOS_EXCLUSIONS, WEAK_ON_ILLUMOS
from providers.fbt.port import Refusal
from trapline.lab.objects.build import Recipe
from trapline.lab.objects.findings import ObjectReport
from trapline.lab.objects.glue import extern
from trapline.lab.objects.kernels.fasttrap import ILLUMOS_MEMBERS
from trapline.lab.objects.kernels.fbt_check import FbtCheck
from trapline.lab.objects.kernels.fbt_system import RECORD, FbtSystem, ObjectSite, TrapHandler
from trapline.lab.objects.kernels.illumos_signals import ScratchSignals
from trapline.lab.objects.kernels.trap_return import ReturningHandler, TrapCode, TrapNotTakenError
from trapline.lab.objects.request import Request, RequestError
from trapline.lab.objects.structures import View

_ATTACH: Final = 0
_INVOP: Final = "dtrace_invop"
_BREAKPOINT: Final = "brktrap"
_INVALID: Final = "invoptrap"
# Functions of the kernel that are only named, or that only functions call which are not tried.
_NOT_CALLED: Final = (
    "nodev", "nulldev", "nochpoll", "ddi_prop_op", "ddi_quiesce_not_needed", "mod_info", "mod_remove",
    "dtrace_unregister", "ddi_remove_minor_node", "ctf_parent_name", "ctf_import", "ctf_close", "ctf_func_info",
    "ctf_func_args", "ctf_type_name", "strcpy", "cmn_err", "rw_enter", "rw_exit", "crgetcred", "crfree", "aston",
    "tsignal", "fuword8", "dtrace_linear_pc", "trap", "xc_sync", "device_arena_contains",
)  # fmt: skip


def _key(frame: View, register: str) -> Any:
    name = ILLUMOS_MEMBERS.get(register, f"r_{register}")
    return name if frame.has(name) else None


class IllumosFbtGlue(FbtSystem):
    """illumos' FBT."""

    entries = ("_init",)
    recipe = Recipe(
        "illumos",
        (),
        # The saved registers are in no object but dtrace_subr.o.
        options=("-fno-eliminate-unused-debug-types",),
        variants={"x86": ("intel/dtrace/fbt.c", "os/dtrace_subr.c", "ml/exception.S")},
    )
    data: ClassVar[Mapping[str, int]] = {
        "cpu_core": 4096,
        "trapline_cpu": 64,
        "trapline_thread": 256,
        "trapline_proc": 64,
        "modules": 128,
        "mod_driverops": 64,
        **dict.fromkeys(("_userlimit", "hole_start", "hole_end", "kernelbase", "toxic_addr", "toxic_size"), 8),
        **dict.fromkeys(_NOT_CALLED, 8),
    }
    next_record = "fbtp_next"
    exclusions = ILLUMOS_EXCLUSIONS
    first_argument = 1
    shares = False

    def set_up(self) -> None:
        """Install and attach the driver, and make a module with a table of one symbol."""
        super().set_up()
        code = self.code
        self._handlers: list[int] = []
        self._provider = self._linkage = 0
        code.call("_init")
        driver = code.view("modldrv", code.view("modlinkage", self._linkage)["ml_linkage"])
        operations = code.view("dev_ops", driver["drv_dev_ops"])
        code.call(operations["devo_attach"], code.allocate(64), _ATTACH)
        self._functions = code.view("dtrace_pops_t", self._provider or None)
        self._module, self._control = code.view("module"), code.view("modctl")
        header, size = code.view("Shdr"), code.view("Sym").size
        table = code.allocate(2 * size)
        self._symbol = code.view("Sym", table + size)
        header["sh_addr"], header["sh_entsize"] = table, size
        self._module["symhdr"], self._module["nsyms"] = header.address, 2
        control = self._control
        control["mod_mp"], control["mod_modname"] = self._module.address, self._text("module")
        control["mod_loadcnt"] = control["mod_loaded"] = 1

    # -- what the kernel offers

    @extern("int mod_install(void *linkage)")
    def install(self, linkage: int) -> int:
        """Note the driver."""
        self._linkage = linkage
        return 0

    @extern("int dtrace_register(const char *name, void *stability, uint32_t privileges, void *credentials, "
            "void *functions, void *argument, uintptr_t *id)")  # fmt: skip
    def register(self, _name: str, _stability: int, _privileges: int, _credentials: int, functions: int,
                 _argument: int, provider: int) -> int:  # fmt: skip
        """Note the functions of the provider."""
        self._provider = functions
        self.code.store(provider, (1).to_bytes(self.code.isa.word, "little"))
        return 0

    @extern("void dtrace_invop_add(void *handler)")
    def add(self, handler: int) -> None:
        """Add a handler of breakpoints."""
        self._handlers.append(handler)

    @extern("void dtrace_invop_remove(void *handler)")
    def remove(self, handler: int) -> None:
        """Remove a handler of breakpoints."""
        self._handlers.remove(handler)

    @extern("int ddi_create_minor_node(void *device, const char *name, int kind, int number, char *type, int flag)")
    def create_node(self, _device: int, _name: str, *_arguments: int) -> int:
        """Do nothing: there are no files."""
        return 0

    @extern("void ddi_report_dev(void *device)")
    def report_device(self, _device: int) -> None:
        """Do nothing."""

    @extern("void *ctf_modopen(void *module, int *error)")
    def open_types(self, _module: int, _error: int) -> int:
        """Return nothing: the module has no types."""
        return 0

    @extern("void *kmem_zalloc(size_t size, int flags)")
    def zalloc(self, size: int, _flags: int) -> int:
        """Allocate zeroed memory."""
        return self._allocate(size, zeroed=True)

    @extern("char *strstr(char *text, char *wanted)")
    def strstr(self, text: int, wanted: int) -> int:
        """Return the offset of a string in a text, 0 if it is not there."""
        found = self.code.text(text).encode().find(self.code.text(wanted).encode())
        return 0 if found < 0 else text + found

    @extern("void cmntrap(void)")
    def other_trap(self) -> None:
        """End the trap.  Raises `TrapNotTakenError`."""
        raise TrapNotTakenError("jumps to cmntrap")

    @extern("void dtrace_trap(void)")
    def program_trap(self) -> None:
        """End the trap.  Raises `TrapNotTakenError`."""
        raise TrapNotTakenError("jumps to dtrace_trap")

    # -- the functions under test

    @property
    def _entry(self) -> str:
        """The trap of the patch: a breakpoint, behind which the pc is, or an invalid instruction."""
        return _BREAKPOINT if self.code.isa.traps.pc_after else _INVALID

    def missing(self) -> Iterator[str]:
        """Yield a sentence about each part of the check that the objects have no function for."""
        if not self.code.defines(self._entry):
            yield f"{self.code.name} does not define {self._entry}: nothing was executed displaced"

    def handler(self) -> TrapHandler | None:
        """Return the user's handler of breakpoints, None if the objects have none."""
        trap = PORTS[self.code.isa.name].illumos
        if trap is None or not self.code.defines(self._entry):
            return None
        # Selectors: the numbers of <sys/segments.h>, times their size.
        system = TrapCode(self._entry, _INVALID, "regs", _key, {"cs": 5 << 3, "ss": 6 << 3})
        return ReturningHandler(self.code, trap, system)

    def refusal(self, symbol: Symbol) -> Refusal | None:
        """Return the reason why illumos gives a function no probes: it has a weak name."""
        return Refusal(symbol.value, WEAK_ON_ILLUMOS) if symbol.binding == Binding.WEAK else None

    def scan(self, symbol: Symbol) -> tuple[list[ObjectSite], bool]:
        """Provide the probes of a module with one function."""
        code, view = self.code, self._symbol
        self._module["strings"], self._module["fbt_nentries"] = self._text(symbol.name), 0
        view["st_value"], view["st_size"] = symbol.value, symbol.size
        view["st_info"] = symbol.binding << 4 | symbol.type
        del self.created[:]
        with code.showing(symbol.value, symbol.size):
            code.call(self._functions["dtps_provide_module"], 0, self._control.address)
        return self._made(), False

    @property
    def patches(self) -> bool:
        """Whether the objects have a patcher."""
        return True

    def set_patch(self, site: ObjectSite, *, enable: bool) -> None:
        """Enable or disable a probe of one record: by itself it has all that follow, too."""
        record = self.code.view(RECORD, site.record)
        following, record[self.next_record] = record[self.next_record], 0
        function = "dtps_enable" if enable else "dtps_disable"
        self.code.call(self._functions[function], 0, record["fbtp_id"], site.record)
        record[self.next_record] = following

    @property
    def fires(self) -> bool:
        """Whether the objects have the function that fires probes."""
        return bool(self._handlers) or self.code.defines(_INVOP)

    def fire(self, address: int, registers: Mapping[str, int]) -> None:
        """Call the handler of breakpoints as exception.S does.

        The stack that it gets is the interrupted one; or the caller and the saved registers, frame
        pointer and pc first, where arguments are in registers.
        """
        code, isa = self.code, self.code.isa
        stack = registers[isa.registers.sp]
        passed = isa.calling.arguments
        if passed:
            caller = int.from_bytes(code.load(stack, isa.word), "little")
            words = (caller, 0, 0, *(registers[name] for name in passed))
            stack = code.allocate(b"".join((word & isa.address_mask).to_bytes(isa.word, "little") for word in words))
        invop = _INVOP if code.defines(_INVOP) else self._handlers[-1]
        code.call(invop, address, stack, registers[isa.calling.results[0]])

    def examine(self, request: Request, report: ObjectReport) -> None:
        """Compare the objects with the package's rules, for each function of an image."""
        if not self._provider:
            raise RequestError(f"{self.code.name}: the driver of _init does not attach or registers no provider")
        FbtCheck(self.code, request, report).run()
        ScratchSignals(self.code, report).run()
