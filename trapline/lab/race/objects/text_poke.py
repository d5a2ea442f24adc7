"""The glue for patchers: functions that write code while other CPUs run.

What their kernels offer them to reach other CPUs and caches is here: of Linux (include/linux/smp.h,
stop_machine.h, arch/*/include/asm/cacheflush.h, text-patching.h), of FreeBSD (sys/sys/smp.h, the
pmaps) and of RISC-V's SBI.  A function that other CPUs execute is really executed, on a CPU of its
own over the same memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final

from emu.assembly import machine_code
from emu.guest.function import FunctionFaultError, FunctionGuest
from emu.isa.base import Isa
from emu.isa.fetch import Effect
from trapline.lab.objects.glue import Glue, extern
from trapline.lab.objects.kernels.fbt import FbtKernel
from trapline.lab.objects.kernels.linux import pt_regs_member
from trapline.lab.objects.prototypes import Prototype, prototype
from trapline.lab.objects.user_code import ObjectError, UserCode
from trapline.lab.race.objects.recorder import Event, Recorder
from trapline.lab.race.operations import (
    FetchStopped,
    Flush,
    Interrupt,
    Quiesce,
    Release,
    RemoteFence,
    Signal,
    Stop,
    Store,
)
from trapline.lab.race.patch import PLACE, Patch

# CPUs of the run: the patcher, another CPU, and the patcher's own share in what all CPUs execute.
CPUS: Final = 3
_PATCHER, _OTHER, _OWN = range(CPUS)
# Instructions after which a function for all CPUs counts as endless.
_LONGEST: Final = 100_000
_INT: Final = 1 << 32
# Distance of the target of the usual patch from its address.
_DISTANCE: Final = 0x100

Arguments = Callable[[UserCode, int, bytes], Sequence[int]]


def _sized(code: UserCode, address: int, data: bytes) -> Sequence[int]:
    return address, code.allocate(data), len(data), 0


def _word(_code: UserCode, address: int, data: bytes) -> Sequence[int]:
    return address, int.from_bytes(data, "little")


def _words(code: UserCode, address: int, data: bytes) -> Sequence[int]:
    size, word = 4, code.isa.word
    addresses = b"".join((address + at).to_bytes(word, "little") for at in range(0, len(data), size))
    return code.allocate(addresses), code.allocate(data), len(data) // size


# Function -> its arguments for an address and the bytes to write.
ENTRIES: Final[Mapping[str, Arguments]] = {
    "patch_code": _sized,  # void *address, const void *bytes, size_t size
    "text_poke_bp": _sized,  # x86: (void *addr, const void *opcode, size_t len, const void *emulate)
    "smp_text_poke_single": _sized,
    "aarch64_insn_patch_text": _words,  # (void *addrs[], u32 insns[], int cnt)
    "aarch64_insn_patch_text_nosync": _word,  # (void *addr, u32 insn)
    "patch_text": _sized,  # RISC-V: (void *addr, u32 *insns, size_t len)
    "patch_text_nosync": _sized,  # RISC-V: (void *addr, const void *insns, size_t len)
}
# Functions that handle a breakpoint: int NAME(struct pt_regs *registers), not 0 if the breakpoint is theirs.
HANDLERS: Final = ("patch_trap_handler", "poke_int3_handler", "smp_text_poke_int3_handler")
# Functions that matter only where threads of the kernel compete for a lock, or where code is not writable.
_NOTHING: Final = (
    "mutex_lock mutex_unlock spin_lock spin_unlock raw_spin_lock raw_spin_unlock cpus_read_lock cpus_read_unlock "
    "preempt_disable preempt_enable smp_no_rendezvous_barrier cpu_relax"
).split()


class TextPokeGlue(Glue):
    """The kernel around a patcher, which records what the patcher does."""

    data: ClassVar[Mapping[str, int]] = {"__cpu_online_mask": 128}
    framework: ClassVar[bool] = False
    """Whether DTrace's cross calls surround the patcher."""
    source: ClassVar[str] = "your object"

    def __init__(self, code: UserCode) -> None:
        super().__init__(code)
        self.recorder: Recorder

    @classmethod
    def externs(cls) -> Mapping[str, tuple[str, Prototype]]:
        """Return the gates, with those that do nothing."""
        return {name: ("nothing", prototype(f"int {name}(void)")) for name in _NOTHING} | dict(super().externs())

    @classmethod
    def usual_patch(cls, isa: Isa) -> str:
        """Return the name of the patch to explore by default: a jump over a nop."""
        nop, new = isa.jump.nop, isa.jump.patch(PLACE, PLACE + _DISTANCE)
        return f"code:{(nop + machine_code(isa, 'ret', PLACE)).hex()}:0:{new.hex()}"

    def entry(self, wanted: str = "") -> str:
        """Return the function that patches.  Raises `ObjectError`."""
        known = [wanted] if wanted else list(ENTRIES)
        found = next((name for name in known if name in ENTRIES and self.code.defines(name)), None)
        if found is None:
            raise ObjectError(f"{self.code.name} defines none of {', '.join(known)}, whose arguments are known")
        return found

    def write(self, entry: str, patch: Patch, data: bytes) -> None:
        """Let the code under test write the new bytes of a patch, or the old ones."""
        self.code.call(entry, *ENTRIES[entry](self.code, patch.site, data))

    def trap_handler(self, wanted: str = "") -> str:
        """Return the function that handles breakpoints, "" if there is none.  Raises `ObjectError`."""
        found = next((name for name in ([wanted] if wanted else HANDLERS) if self.code.defines(name)), "")
        if wanted and not found:
            raise ObjectError(f"{self.code.name} does not define {wanted}")
        return found

    def prepare_frame(self) -> None:
        """Make the structure of the saved registers.  Raises `LayoutError`: DWARF lacks it."""
        self._frame = self.code.view("pt_regs")

    def handle(self, handler: str, registers: Mapping[str, int]) -> tuple[bool, dict[str, int]]:
        """Let the code under test handle a breakpoint.

        `registers` are those of the interrupted code, with the pc of the breakpoint.  Returns
        whether the handler claims it, and the registers that it leaves.
        Raises `FunctionFaultError`.
        """
        code, frame, isa = self.code, self._frame, self.code.isa
        code.store(frame.address, bytes(frame.size))
        keys = {name: key for name in registers if (key := pt_regs_member(frame, name)) is not None}
        for name, key in keys.items():
            frame[key] = registers[name] + (isa.traps.saved_user_pc_after if name == isa.registers.pc else 0)
        self._run({_OTHER: code.address(handler)}, frame.address)
        result = code.cpus[_OTHER].engine.read_register(isa.calling.results[0]) % _INT
        return bool(result), {name: frame[key] & isa.address_mask for name, key in keys.items()}

    def nothing(self) -> int:
        """Do nothing."""
        return 0

    # -- stores

    @extern("void *memcpy(void *to, const void *from, size_t size)")
    def memcpy(self, to: int, source: int, size: int) -> int:
        """Copy memory byte by byte, as a memcpy may do."""
        data = self.code.load(source, size)
        self.code.store(to, data)
        self._stored(to, data, whole=size == 1)
        return to

    @extern("void *text_poke(void *addr, const void *opcode, size_t len)")
    def text_poke(self, to: int, source: int, size: int) -> int:
        """Copy through another mapping, and fetch anew (Linux arch/x86/kernel/alternative.c)."""
        self.memcpy(to, source, size)
        self.recorder.add(Effect.ORDER | Effect.COMPLETE | Effect.SYNCHRONIZE)
        return to

    @extern("long copy_to_kernel_nofault(void *to, const void *from, size_t size)")
    def copy_to_kernel_nofault(self, to: int, source: int, size: int) -> int:
        """Copy in the largest units whose both addresses are aligned (Linux mm/maccess.c)."""
        data = self.code.load(source, size)
        self.code.store(to, data)
        done = 0
        for unit in (8, 4, 2, 1):
            while size - done >= unit and (to | source) % unit == 0 and unit <= self.code.isa.word:
                self._stored(to + done, data[done : done + unit])
                done += unit
        return 0

    def _stored(self, address: int, data: bytes, *, whole: bool = True) -> None:
        if self.recorder.covers(address, len(data)):
            self.recorder.add(Store(address, data, whole))

    # -- this CPU's caches

    @extern("void sync_core(void)")
    def sync_core(self) -> None:
        """Fetch anew, on this CPU."""
        self.recorder.add(Effect.ORDER | Effect.COMPLETE | Effect.SYNCHRONIZE)

    @extern("void local_flush_icache_all(void)")
    def local_flush_icache_all(self) -> None:
        """Fetch anew, on this CPU."""
        self.recorder.add(Effect.SYNCHRONIZE)

    @extern("void local_flush_icache_range(unsigned long start, unsigned long end)")
    def local_flush_icache_range(self, _start: int, _end: int) -> None:
        """Fetch anew, on this CPU."""
        self.local_flush_icache_all()

    @extern("void caches_clean_inval_pou(unsigned long start, unsigned long end)")
    def caches_clean_inval_pou(self, start: int, end: int) -> None:
        """Clean and invalidate the lines of a range (Linux arch/arm64/mm/cache.S)."""
        fetching, coherent = self.code.isa.fetching, self.code.isa.traps.coherent
        if not fetching.broadcast:
            self.local_flush_icache_all()
        elif not coherent and self.recorder.covers(start, end - start, lines=True):
            self.recorder.add(Flush())

    @extern("void cpu_icache_sync_range(uintptr_t address, size_t size)")
    def icache_sync(self, address: int, size: int) -> None:
        """Clean and invalidate the lines of a range (FreeBSD sys/arm64/arm64/cpufunc_asm.S)."""
        self.caches_clean_inval_pou(address, address + size)

    # -- other CPUs

    @extern("void flush_icache_range(unsigned long start, unsigned long end)")
    def flush_icache_range(self, start: int, end: int) -> None:
        """Make all CPUs fetch a range anew, as Linux does on each ISA."""
        self.caches_clean_inval_pou(start, end)
        if not self.code.isa.fetching.broadcast:
            self.recorder.add(Effect.ORDER | Effect.COMPLETE)
            self.recorder.add(RemoteFence())
        elif not self.code.isa.traps.coherent:
            self.kick_all_cpus_sync()

    @extern("void sbi_remote_fence_i(const void *mask)")
    def sbi_remote_fence_i(self, _mask: int) -> int:
        """Let the firmware execute a fence.i on each other hart; it does not wait for stores."""
        self.recorder.add(RemoteFence())
        return 0

    @extern("void text_poke_sync(void)")
    def text_poke_sync(self) -> None:
        """Make all CPUs serialize, and wait for them."""
        self.recorder.add(Interrupt(synchronize=True))

    @extern("void smp_text_poke_sync_each_cpu(void)")
    def smp_text_poke_sync_each_cpu(self) -> None:
        """Do what text_poke_sync did before Linux 6.16."""
        self.text_poke_sync()

    @extern("void kick_all_cpus_sync(void)")
    def kick_all_cpus_sync(self) -> None:
        """Interrupt all CPUs, and wait for them."""
        self.recorder.add(Interrupt(synchronize=False))

    @extern("void synchronize_rcu_tasks(void)")
    def synchronize_rcu_tasks(self) -> None:
        """Wait until every thread has been elsewhere."""
        self.recorder.add(Quiesce())

    @extern("int smp_call_function(void *function, void *argument, int wait)")
    def smp_call_function(self, function: int, argument: int, wait: int) -> int:
        """Execute a function on the other CPUs."""
        self.recorder.settle()
        events = self.recorder.taken(lambda: self._run({_OTHER: function}, argument))
        if any(isinstance(event, Store) for _, event in events):
            raise ObjectError(f"{self.code.where(function)} writes code on every CPU, while others execute it")
        synchronize = any(isinstance(event, Effect) and Effect.SYNCHRONIZE in event for _, event in events)
        self.recorder.add(Interrupt(synchronize) if wait else Signal())
        return 0

    @extern("void on_each_cpu(void *function, void *argument, int wait)")
    def on_each_cpu(self, function: int, argument: int, wait: int) -> None:
        """Execute a function on all CPUs."""
        self.smp_call_function(function, argument, wait)
        self._add(self.recorder.taken(lambda: self._run({_OWN: function}, argument)), _OWN)

    @extern("int stop_machine(void *function, void *argument, const void *cpus)")
    def stop_machine(self, function: int, argument: int, cpus: int) -> int:
        """Stop all CPUs, and execute a function on one of them, or on all if `cpus` is not NULL."""
        self._together([_OTHER, _OWN] if cpus else [_OWN], function, argument)
        return 0

    @extern("int stop_machine_cpuslocked(void *function, void *argument, const void *cpus)")
    def stop_machine_cpuslocked(self, function: int, argument: int, cpus: int) -> int:
        """Do what stop_machine does."""
        return self.stop_machine(function, argument, cpus)

    @extern("void smp_rendezvous(void *setup, void *action, void *teardown, void *argument)")
    def smp_rendezvous(self, _setup: int, action: int, _teardown: int, argument: int) -> None:
        """Execute a function on all CPUs, which wait for each other before and after (FreeBSD)."""
        self._together([_OTHER, _OWN], action, argument)

    @extern("void rendezvous(void *action, void *argument)")
    def rendezvous_all(self, action: int, argument: int) -> None:
        """Execute a function on all CPUs, which wait for each other before and after."""
        self._together([_OTHER, _OWN], action, argument)

    @extern("int num_online_cpus(void)")
    def num_online_cpus(self) -> int:
        """Return 2: the patcher, and a CPU that stands for all others."""
        return 2

    @extern("int smp_processor_id(void)")
    def smp_processor_id(self) -> int:
        """Return 0 for the patcher, 1 for the other CPU."""
        return int(self.code.running.cpu == _OTHER)

    def _together(self, cpus: Sequence[int], function: int, argument: int) -> None:
        """Execute a function on CPUs while all are stopped; the CPU that writes is the patcher.

        A CPU that writes nothing may wait in the function until the other has written.  Both run
        in turns of one instruction, so that it fetches anew as early as its code permits: a CPU
        that does so later holds no more old bytes, so that order is the worst.
        """
        self.recorder.add(Stop())
        events = self.recorder.taken(lambda: self._run(dict.fromkeys(cpus, function), argument))
        writes = {cpu for cpu, event in events if isinstance(event, Store)}
        self._add(events, _OTHER if writes == {_OTHER} else _OWN)
        self.recorder.add(Release(synchronize=False))

    def _add(self, events: Sequence[tuple[int, Event]], patcher: int) -> None:
        """Add what CPUs did in a function that all execute, one of them as the patcher."""
        for cpu, event in events:
            if cpu == patcher or isinstance(event, Store):
                self.recorder.add(event)
            elif isinstance(event, Effect) and Effect.SYNCHRONIZE in event:
                self.recorder.add(FetchStopped())

    def _run(self, functions: Mapping[int, int], argument: int) -> None:
        """Execute functions on CPUs, in turns."""
        busy = [self.code.cpus[cpu] for cpu in functions]
        for cpu in busy:
            cpu.prepare(argument, function=functions[cpu.cpu])
        for _ in range(_LONGEST):
            busy = [cpu for cpu in busy if not cpu.advance(1)]
            if not busy:
                return
        raise FunctionFaultError("a function for all CPUs does not return", _place(busy))


def _place(busy: Sequence[FunctionGuest]) -> int:
    return busy[0].engine.pc


_ENTRY: Final = "fbt_patch_tracepoint"


class FbtPokeGlue(TextPokeGlue, FbtKernel):
    """FBT's kernel, which records what the patcher does."""

    entries = (_ENTRY,)
    data: ClassVar[Mapping[str, int]] = {**FbtKernel.data, **TextPokeGlue.data}
    framework: ClassVar[bool] = True

    @classmethod
    def usual_patch(cls, isa: Isa) -> str:
        """Return the name of the patch to explore by default."""
        del isa
        return "fbt::malloc:entry"

    def entry(self, wanted: str = "") -> str:
        """Return the function that patches.  Raises `ObjectError`."""
        if wanted not in {"", _ENTRY}:
            raise ObjectError(f"the glue fbt calls {_ENTRY}, not {wanted}")
        return _ENTRY

    def write(self, entry: str, patch: Patch, data: bytes) -> None:
        """Patch by a record as fbt.c has it.  Raises `LayoutError` without debugging information."""
        record = self.code.view("fbt_probe_t")
        record["fbtp_patchpoint"] = patch.site
        record["fbtp_patchval"] = int.from_bytes(patch.new, "little")
        record["fbtp_savedval"] = int.from_bytes(patch.old, "little")
        self.code.call(entry, record.address, int.from_bytes(data, "little"))
