"""The glues for fasttrap of FreeBSD and illumos on x86: fasttrap_isa.c, which decodes and emulates.

They do what fasttrap.c does around them: the table of tracepoints, the program's memory, and the
scratch space of a thread.  Source: FreeBSD
sys/cddl/contrib/opensolaris/uts/common/dtrace/fasttrap.c, uts/intel/dtrace/fasttrap_isa.c; illumos
usr/src/uts/common/dtrace/fasttrap.c, usr/src/uts/intel/dtrace/fasttrap_isa.c,
usr/src/uts/intel/amd64/sys/privregs.h, usr/src/uts/intel/ia32/sys/privregs.h.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from emu.displaced.decision import Code, Emulated, Refused
from emu.support.words import BadAddressError
from providers import dis_tables, fasttrap
from providers.fidelity import Fidelity
from trapline.lab.objects.build import Recipe
from trapline.lab.objects.decoder.batches import LONGEST, Answer, Member, Question
from trapline.lab.objects.decoder.displaced import Frame
from trapline.lab.objects.decoder.sweep_check import examine
from trapline.lab.objects.decoder.trial import PLACE, PLACE_SIZE
from trapline.lab.objects.decoder.word_sweep import Decoder
from trapline.lab.objects.findings import ObjectReport
from trapline.lab.objects.glue import Glue, extern
from trapline.lab.objects.plain_cpu import SLOT
from trapline.lab.objects.request import Request, RequestError
from trapline.lab.objects.structures import View
from trapline.lab.objects.verdict import COPIED, REFUSED, SIMULATED, Verdict

_INIT: Final = "fasttrap_tracepoint_init"
_PROBE: Final = "fasttrap_pid_probe"
_INT: Final = 1 << 32
_PID: Final = 100
_ENTRY: Final = 1
# FASTTRAP_T_COMMON: the instruction is executed in the scratch space.
_COMMON: Final = 0
# The kinds of tracepoints that are not FASTTRAP_T_COMMON.
_KINDS: Final = dict(enumerate(("JCC", "LOOP", "JCXZ", "JMP", "CALL", "RET", "RET16", "PUSHL_EBP", "NOP"), 1))
# The members with the kind, the length, and the register that stands for rip; the bits of the last one's value:
# FASTTRAP_RIP_1, _2 and _X (another register than rax or rcx).
_KIND, _SIZE, _RIP_MODE = "ftt_type", "ftt_size", "ftt_ripmode"
_RIP_BITS: Final = 7
_RIP_MODES: Final = {0: "as it is", 1: "by rax", 2: "by rcx", 5: "by r8", 6: "by r9"}
_MEASURE: Final = "dtrace_instr_size_isa"
# DATAMODEL_ILP32 and DATAMODEL_LP64, by the size of a word.
_MODELS: Final = {4: 1, 8: 2}
# The members of illumos' struct regs that are not named r_REGISTER.
ILLUMOS_MEMBERS: Final[Mapping[str, str]] = {"esp": "r_uesp", "rflags": "r_rfl", "eflags": "r_efl"}


def _recipe(*options: str) -> Recipe:
    return Recipe("fasttrap", (), options=options, variants={"x86": ("intel/dtrace/fasttrap_isa.c",)})


class FasttrapKernel(Glue):
    """The kernel around fasttrap of any system."""

    sweeps = True
    entries = (_INIT,)
    data: ClassVar[Mapping[str, int]] = {
        "trapline_proc": 256,
        "trapline_thread": 256,
        "trapline_cpu": 64,
        "trapline_lwp": 256,
        "trapline_gdt": 512,
        "gdt": 256,
        "cpu_core": 4096,
        "fasttrap_tpoints": 64,
        "max_ldt_segment": 4,
    }
    frame: str
    members: ClassVar[Mapping[str, str]] = {}
    """The members of the structure of registers that are not named r_REGISTER."""

    def set_up(self) -> None:
        """Make the process, its thread, and a table of one tracepoint."""
        code = self.code
        self._tracepoint = code.view("fasttrap_tracepoint_t")
        owner = code.view("fasttrap_proc_t")
        owner["ftpc_acount"] = 1
        for name, value in (("ftt_pid", _PID), ("ftt_pc", PLACE), ("ftt_proc", owner.address)):
            self._tracepoint[name] = value
        bucket = code.view("fasttrap_bucket_t")
        bucket["ftb_data"] = self._tracepoint.address
        self._text = code.allocate(LONGEST)
        self._port = fasttrap.PORTS[code.isa.name]
        self._empty = code.load(self._tracepoint.address, self._tracepoint.size)
        self._process = code.address("trapline_proc") if code.image.defines("trapline_proc") else code.allocate(256)
        if code.defines(_PROBE):
            code.view("fasttrap_hash_t", code.address("fasttrap_tpoints"))["fth_table"] = bucket.address
            self._thread = code.view("thread", code.address("trapline_thread"))
        process = code.view("proc", self._process)
        process["p_pid"], process["p_model"] = _PID, _MODELS[code.isa.word]
        self.set_up_system(process)
        self._instruction, self._decision, self._slot, self.signalled = b"", "", b"", False

    def set_up_system(self, process: View) -> None:
        """Set what only one system has: the scratch space, and the process's relatives."""
        raise NotImplementedError

    def key(self, frame: View, register: str) -> Any:
        """Return the member that holds a register, None if there is none."""
        name = self.members.get(register, f"r_{register}")
        return name if frame.has(name) else None

    # -- what fasttrap.c and dtrace.c offer

    @extern("int uread(void *process, void *to, size_t size, uintptr_t from)")
    def uread(self, _process: int, to: int, size: int, source: int) -> int:
        """Read the program's memory: the instruction is there, and zeros."""
        if not PLACE <= source <= source + size <= PLACE + PLACE_SIZE:
            return -1
        text = self.code.guest.engine.read(self._text, LONGEST).ljust(PLACE_SIZE, b"\0")
        self.code.store(to, text[source - PLACE :][:size])
        return 0

    @extern("int fasttrap_copyout(const void *from, void *to, size_t size)")
    def copyout(self, source: int, to: int, size: int) -> int:
        """Write the scratch space."""
        if to == SLOT:
            self._slot = self.code.load(source, size)
        return 0 if to == SLOT else -1

    @extern("int uwrite(void *process, const void *from, size_t size, uintptr_t to)")
    def uwrite(self, _process: int, source: int, size: int, to: int) -> int:
        """Write the scratch space."""
        return self.copyout(source, to, size)

    @extern("int fasttrap_sulword(void *address, uintptr_t value)")
    def store(self, address: int, value: int) -> int:
        """Store a word in the program's memory; return -1 if it is not there."""
        return self._poke(address, value, self.code.isa.word)

    @extern("int fasttrap_suword32(void *address, uint32_t value)")
    def store32(self, address: int, value: int) -> int:
        """Store 32 bits in the program's memory; return -1 if they are not there."""
        return self._poke(address, value, 4)

    def bytes_at(self, address: int, size: int) -> bytes | None:
        """Return bytes of the program's memory, None if they are not there."""
        try:
            return self.code.guest.engine.read(address, size)
        except BadAddressError:
            return None

    def peek(self, address: int, size: int) -> int:
        """Return bytes of the program's memory as a number, -1 if they are not there."""
        data = self.bytes_at(address, size)
        return -1 if data is None else int.from_bytes(data, "little")

    def _poke(self, address: int, value: int, size: int) -> int:
        try:
            self.code.guest.engine.memory.write(address, value.to_bytes(size, "little"))
        except BadAddressError:
            return -1
        return 0

    @extern("int dtrace_instr_size_isa(const void *instruction, int model, int *modrm)")
    def instr_size(self, address: int, _model: int, modrm: int) -> int:
        """Return an instruction's length, and where its ModRM byte is; -1 if there is none."""
        data = self.code.guest.engine.read(address, fasttrap.PORTS[self.code.isa.name].longest)
        size, at = dis_tables.measure(data, self.code.isa.word)
        self.code.store(modrm, at.to_bytes(4, "little", signed=True))
        return size or -1

    @extern("void fasttrap_sigtrap(void *process, void *thread, uintptr_t pc)")
    def sigtrap(self, _process: int, _thread: int, _pc: int) -> None:
        """Note that the program gets a signal."""
        self.signalled = True

    @extern("void dtrace_probe(dtrace_id_t id, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e)")
    def probe(self, _id: int, *_arguments: int) -> None:
        """Do nothing: no probe is enabled."""

    @extern("uintptr_t dtrace_fulword(void *address)")
    def dtrace_fetch(self, address: int) -> int:
        """Return a word of the program's memory."""
        return self.peek(address, self.code.isa.word)

    @extern("uint32_t dtrace_fuword32(void *address)")
    def dtrace_fetch32(self, address: int) -> int:
        """Return 32 bits of the program's memory."""
        return self.peek(address, 4)

    # -- the functions under test

    def decide(self, address: int, instruction: bytes) -> str:
        """Return the decision of the code under test.

        Raises `FunctionFaultError` and `GluePanicError`.
        """
        code, tracepoint = self.code, self._tracepoint
        code.store(tracepoint.address, self._empty)
        self._instruction = instruction
        code.store(self._text, instruction.ljust(LONGEST, b"\0"))
        refused = code.call(_INIT, self._process, tracepoint.address, address, _ENTRY) % _INT
        self._decision = REFUSED if refused else COPIED if tracepoint["ftt_type"] == _COMMON else SIMULATED
        return self._decision

    def decided_at(self) -> int:
        """Return the address of the member that holds the last decision."""
        return self._tracepoint.place("ftt_type")

    def ours(self, address: int, instruction: bytes, fidelity: Fidelity) -> tuple[str, str]:
        """Return the decision of the package's rules, and the rule's name."""
        decision = self._port.treat(Code(instruction, address), fidelity)
        if isinstance(decision, Refused):
            return REFUSED, decision.rule.name
        return SIMULATED if isinstance(decision, Emulated) else COPIED, decision.rule.name

    def executes(self, _decision: str) -> bool:
        """Return whether the code has the handler of a hit."""
        return self.code.defines(_PROBE)

    def execute(self, frame: Frame, address: int, instruction: bytes) -> str:
        """Execute an instruction on a frame, as at a hit."""
        if instruction != self._instruction:
            self.decide(address, instruction)
        frame.pc = address + self.code.isa.traps.saved_user_pc_after
        if self._thread.has("td_frame"):
            self._thread["td_frame"] = frame.address
        self._thread["t_dtrace_step"] = 0
        self.signalled = False
        if self.code.call(_PROBE, frame.address) % _INT:
            return "their handler does not claim the breakpoint"
        if self.signalled:
            return "their handler sends a signal"
        if frame.pc == SLOT:
            frame.run_copy(self._slot)
        return ""

    def decoder(self) -> Decoder:
        """Refuse: fasttrap is x86's.  Raises `RequestError`."""
        raise RequestError(f"there are no rules of words for {type(self).__name__}")

    def question(self) -> Question:
        """Return how a sweep asks the decoder."""
        tracepoint = self._tracepoint
        names = [name for name in (_KIND, _SIZE, _RIP_MODE) if tracepoint.has(name)]
        members = [Member(tracepoint.place(name), tracepoint.field(name)[1]) for name in names]
        arguments = self._process, tracepoint.address, PLACE, _ENTRY
        structure = Member(tracepoint.address, tracepoint.size)
        return Question(_INIT, arguments, structure, self._empty, self._text, members)

    def verdict(self, answer: Answer) -> Verdict:
        """Return what an answer of the decoder means."""
        if answer.result:
            return Verdict(REFUSED)
        kind, size, *mode = answer.members
        # The length is the object's own only if its disassembler is.
        length = size if self.code.defines(_MEASURE) else 0
        if kind != _COMMON:
            return Verdict(SIMULATED, length, _KINDS.get(kind, ""))
        return Verdict(COPIED, length, _RIP_MODES.get(mode[0] & _RIP_BITS, "") if mode else "")

    def our_verdict(self, code: bytes, fidelity: Fidelity) -> tuple[Verdict | None, str]:
        """Return the decision of the package's rules, and the rule's name."""
        decision = self._port.treat(Code(code, PLACE), fidelity)
        rule = decision.rule.name
        match decision:
            case Refused():
                return Verdict(REFUSED), rule
            case Emulated(_, length):
                return Verdict(SIMULATED, length, rule.partition(",")[0]), rule
            case _:
                # Other rules choose a register that the instruction does not use.
                scratch = decision.scratch if fidelity is Fidelity.FREEBSD else None
                how = "" if scratch is None else f"by {scratch}" if scratch else "as it is"
                return Verdict(COPIED, decision.length, how), rule

    def examine(self, request: Request, report: ObjectReport) -> None:
        """Compare the decisions about a program's instructions, a sample, or all encodings."""
        examine(self, request, report)


class FasttrapGlue(FasttrapKernel):
    """The glue for FreeBSD's fasttrap on x86."""

    frame = "reg"
    recipe = _recipe()

    def set_up_system(self, process: View) -> None:
        """Make the scratch space, and a parent that does not share the process's memory."""
        self._scratch = self.code.view("fasttrap_scrspace_t")
        self._scratch["ftss_addr"] = SLOT
        process["p_pptr"], process["p_vmspace"] = self.code.view("proc").address, process.address

    @extern("void *fasttrap_scraddr(void *thread, void *process)")
    def scratch(self, _thread: int, _process: int) -> int:
        """Return the thread's scratch space."""
        return self._scratch.address

    @extern("uintptr_t fasttrap_fulword(const void *address)")
    def fetch(self, address: int) -> int:
        """Return a word of the program's memory, -1 if it is not there."""
        return self.peek(address, self.code.isa.word)

    @extern("uint32_t fasttrap_fuword32(const void *address)")
    def fetch32(self, address: int) -> int:
        """Return 32 bits of the program's memory, -1 if they are not there."""
        return self.peek(address, 4)

    @extern("int tdksignal(void *thread, int signal, void *information)")
    def signal(self, _thread: int, _signal: int, _information: int) -> int:
        """Note that the program gets a signal."""
        self.signalled = True
        return 0


class IllumosFasttrapGlue(FasttrapKernel):
    """The glue for illumos' fasttrap on x86."""

    frame = "regs"
    members = ILLUMOS_MEMBERS
    recipe = _recipe("-DTRAPLINE_ILLUMOS")

    def set_up_system(self, process: View) -> None:
        """Place the thread's scratch space, which follows a pointer at the base of its segment."""
        _ = process
        code = self.code
        if code.defines(_PROBE):
            control = code.view("pcb", code.address("trapline_lwp"))
            base = SLOT - code.isa.word
            if control.has("pcb_fsbase"):
                control["pcb_fsbase"] = base
            else:
                code.view("user_desc", control.place("pcb_gsdesc"))["usd_base"] = base

    @extern("int fasttrap_fulword(const void *address, uintptr_t *value)")
    def fetch(self, address: int, value: int) -> int:
        """Fetch a word of the program's memory; return -1 if it is not there."""
        return self._fetch(address, value, self.code.isa.word)

    @extern("int fasttrap_fuword32(const void *address, uint32_t *value)")
    def fetch32(self, address: int, value: int) -> int:
        """Fetch 32 bits of the program's memory; return -1 if they are not there."""
        return self._fetch(address, value, 4)

    def _fetch(self, address: int, value: int, size: int) -> int:
        data = self.bytes_at(address, size)
        if data is not None:
            self.code.store(value, data)
        return -1 if data is None else 0

    @extern("void *kmem_zalloc(size_t size, int flags)")
    def zalloc(self, size: int, _flags: int) -> int:
        """Return zeroed memory: it is for a signal."""
        return self.code.allocate(size)

    @extern("void sigaddqa(void *process, void *thread, void *signal)")
    def add_signal(self, _process: int, _thread: int, _signal: int) -> None:
        """Note that the program gets a signal."""
        self.signalled = True
