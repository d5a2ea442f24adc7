"""The current task: a reader of the kernel's task_struct, by the offsets of its BTF."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import Final

from emu.engine.engine import Engine
from emu.guest.base import Thread
from emu.guest.linux_kernel.abi import THREAD_SIZE
from emu.guest.linux_kernel.files.facts import KernelFacts
from emu.guest.linux_kernel.platforms.boards import BOARDS
from emu.support.plain import address_of, words
from emu.support.words import WORD_MASK, BadAddressError

_WORD: Final = 8
COMM: Final = 16
# The length of the arguments in pr_psargs.
_ARGUMENTS: Final = 4096
_NOBODY: Final = Thread(0, 0, 0, 0, "swapper")
# The offsets that are used, by structure.
_WANTED: Final = {
    "task_struct": ("comm", "pid", "tgid", "real_parent", "cred", "mm", "active_mm", "stack", "se.sum_exec_runtime"),
    "mm_struct": ("arg_start", "arg_end", "pgd"),
    "cred": ("uid", "gid"),
}


class Tasks:
    """The tasks of one running kernel."""

    def __init__(self, engine: Engine, facts: KernelFacts) -> None:
        self._engine = engine
        self.abi = BOARDS[facts.image.isa].abi
        btf = facts.btf
        self.offsets = {
            f"{name}.{member}": btf.offset(name, member) for name, members in _WANTED.items() for member in members
        }
        self._regs_size = btf.struct_size("pt_regs")
        self._error = words(1)
        self.error_address = address_of(self._error)
        """The address of `errno`, for machine code."""
        self.variable = self._per_cpu(facts)
        """Address of the variable that holds the current task; 0: a register does."""
        init = facts.symbols.get("init_task")
        self._init = init.value if init else 0

    @property
    def errno(self) -> int:
        """Error number of the system call that is about to return, 0 for none."""
        return self._error[0]

    @errno.setter
    def errno(self, number: int) -> None:
        self._error[0] = number

    def _per_cpu(self, facts: KernelFacts) -> int:
        """Return the address of the variable that holds the current task; 0: a register does."""
        known = next(filter(None, map(facts.symbols.get, self.abi.current_variable)), None)
        if known is None:
            return 0
        return self._engine.load(facts.symbols.address("__per_cpu_offset"), _WORD) + known.value & WORD_MASK

    def current(self) -> int:
        """Return the address of the current task_struct, 0 before there is one."""
        engine, abi = self._engine, self.abi
        if self.variable:
            return engine.load(self.variable, _WORD)
        if engine.isa.is_kernel_address(engine.pc) or abi.current_in_user is None:
            return engine.read_register(abi.current)
        return engine.cpu.read_public(abi.current_in_user)

    def thread(self) -> Thread:
        """Return the current thread; before there is one, swapper."""
        task = self.current()
        if not self._engine.isa.is_kernel_address(task):
            return _NOBODY
        try:
            return self._thread(task)
        except BadAddressError:
            return _NOBODY

    def _thread(self, task: int) -> Thread:
        cred = self.word(task, "task_struct.cred")
        parent = self.word(task, "task_struct.real_parent")
        return Thread(
            address=task,
            tid=self._int(task, "task_struct.pid"),
            pid=self._int(task, "task_struct.tgid"),
            ppid=self._int(parent, "task_struct.tgid") if parent else 0,
            execname=self.name(task),
            execargs=self._arguments(task),
            uid=self._int(cred, "cred.uid") if cred else 0,
            gid=self._int(cred, "cred.gid") if cred else 0,
            errno=self.errno,
        )

    def parent(self, pid: int) -> int | None:
        """Return the parent of the current process or of one of its ancestors.

        None: it is swapper, or no such process.
        """
        task, seen = self.current(), set[int]()
        with suppress(BadAddressError):
            while task not in seen:
                seen.add(task)
                parent = self.word(task, "task_struct.real_parent")
                if self.pid(task) == pid:
                    return None if parent == task else self.pid(parent)
                task = parent
        return None

    def name(self, task: int) -> str:
        """Return a task's name."""
        text = self._engine.read(task + self.offsets["task_struct.comm"], COMM)
        return text.split(b"\0", 1)[0].decode("utf-8", "replace")

    def word(self, address: int, member: str) -> int:
        """Return a word of a structure, by "struct.member"."""
        return self._engine.load(address + self.offsets[member], _WORD)

    def pid(self, task: int) -> int:
        """Return the number of a task's process."""
        return self._int(task, "task_struct.tgid")

    def _int(self, address: int, member: str) -> int:
        (value,) = struct.unpack("<i", self._engine.read(address + self.offsets[member], 4))
        return int(value)

    def _arguments(self, task: int) -> str:
        mm = self.word(task, "task_struct.mm")
        if not mm:
            return ""
        start, end = self.word(mm, "mm_struct.arg_start"), self.word(mm, "mm_struct.arg_end")
        try:
            data = self.user_read(start, max(0, min(end - start, _ARGUMENTS)))
        except BadAddressError:
            return ""
        return data.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")

    # -- memory of programs

    def user_root(self) -> int | None:
        """Return the page table of the current process, in the form for the walk.

        While the kernel runs, the CPU may have another one in its register, or none.
        """
        task = self.current()
        mm = self.word(task, "task_struct.mm") if task else 0
        if not mm:
            return None
        table = self._engine.memory.translate(self.word(mm, "mm_struct.pgd"))
        return None if table is None else self._engine.isa.paging.root(table)

    def user_read(self, address: int, size: int) -> bytes:
        """Read memory of the current process.  Raises `BadAddressError`."""
        isa = self._engine.isa
        if isa.is_kernel_address(address) or isa.is_kernel_address(address + size):
            raise BadAddressError(address)
        root = self.user_root()
        if root is None:
            raise BadAddressError(address)
        return self._engine.memory.read(address, size, root)

    def user_write(self, address: int, data: bytes) -> None:
        """Write memory of the current process.  Raises `BadAddressError`."""
        isa = self._engine.isa
        root = self.user_root()
        if root is None or isa.is_kernel_address(address) or isa.is_kernel_address(address + len(data)):
            raise BadAddressError(address)
        self._engine.code.store(address, data, root)

    # -- registers of programs

    def stack(self, task: int) -> range:
        """Return a task's kernel stack."""
        low = self.word(task, "task_struct.stack")
        return range(low, low + THREAD_SIZE)

    def user_registers(self) -> dict[str, int] | None:
        """Return the registers with which the current task left user mode.

        None for a kernel thread.
        """
        task = self.current()
        if not task or not self.word(task, "task_struct.mm"):
            return None
        return self.registers_at(self.stack(task).stop - self._regs_size)

    def registers_at(self, address: int) -> dict[str, int]:
        """Return the registers of a struct pt_regs.  Raises `BadAddressError`."""
        names = self.abi.pt_regs
        found = struct.unpack(f"<{len(names)}Q", self._engine.read(address, _WORD * len(names)))
        return dict(zip(names, found, strict=True))
