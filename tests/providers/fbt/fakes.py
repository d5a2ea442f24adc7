"""A small framework, memory and frames for tests of FBT."""

from __future__ import annotations

from dataclasses import dataclass, field

from emu.elf.symbols import Binding, Symbol, SymbolType
from emu.guest.modules import Module
from emu.isa import ISAS
from emu.probe.patcher import Patcher
from emu.probe.trap import TrapHandler
from emu.support.words import BadAddressError
from providers.fbt import FBT
from tests.providers.fbt.assembly import assemble


class FakeFramework:
    """Creates probes and records firings."""

    def __init__(self):
        self.providers = []
        self.probes = {}
        self.fired = []
        self.on_fire = lambda: None
        self.native = {}

    def register(self, provider):
        self.providers.append(provider)

    def unregister(self, provider):
        self.providers.remove(provider)

    def probe_create(self, provider, module, function, name, aframes, arg):
        number = 100 + len(self.probes)
        self.probes[number] = (f"{provider.name}:{module}:{function}:{name}", aframes, arg)
        return number

    def probe_lookup(self, provider, module, function, name):
        wanted = f"{provider.name}:{module}:{function}:{name}"
        return next((number for number, (probe, _, _) in self.probes.items() if probe == wanted), 0)

    def probe_arg(self, provider, probe_id):
        return self.probes[probe_id][2]

    def probe(self, probe_id, arg0=0, arg1=0, arg2=0, arg3=0, arg4=0):
        self.fired.append((self.probes[probe_id][0], arg0, arg1, arg2, arg3, arg4))
        self.on_fire()

    def native_runs(self, probe_id):
        return self.native.get(probe_id, 0)


class Memory:
    """Code at `BASE`."""

    BASE = 0xFFFF_FFFF_8020_0000

    def __init__(self, code):
        self.code = bytearray(code)

    def read(self, address, size):
        """Return up to `size` bytes."""
        if not 0 <= address - self.BASE < len(self.code):
            raise BadAddressError(address)
        return bytes(self.code[address - self.BASE : address - self.BASE + size])

    def write_code(self, address, data):
        self.code[address - self.BASE : address - self.BASE + len(data)] = data


@dataclass
class FakeFrame:
    """Arguments 1..5, results 11 and 12, a stack, and RISC-V's ra."""

    stack: list[int] = field(default_factory=lambda: [0x1111, 0x2222])
    registers: dict[str, int] = field(default_factory=lambda: {"ra": 0x8000})

    def register(self, name):
        return self.registers[name]

    def arguments(self):
        return 1, 2, 3, 4, 5

    def argument(self, index):
        return index

    def results(self):
        return 11, 12

    def stack_word(self, index):
        if index >= len(self.stack):
            raise BadAddressError(8 * index)
        return self.stack[index]


def symbol(name, value, size, kind=SymbolType.FUNC, binding=Binding.GLOBAL):
    return Symbol(name, value, size, kind, binding, 1)


class Kernel:
    """FBT over a kernel made of listings: {function name: listing}; aliases are {name: name of the original}."""

    def __init__(self, isa_name, listings, *, aliases=None, signatures=None, name="kernel", **module):
        self.isa = ISAS[isa_name]
        code, symbols = b"", []
        for function, listing in listings.items():
            start = Memory.BASE + len(code)
            body = assemble(isa_name, listing, start)
            symbols.append(symbol(function, start, len(body)))
            code += body.ljust(-(-len(body) // 16) * 16, b"\0")
        for alias, original in (aliases or {}).items():
            known = next(each for each in symbols if each.name == original)
            symbols.append(known._replace(name=alias))
        self.memory = Memory(code + bytes(64))
        self.pristine = bytes(self.memory.code)
        self.framework = FakeFramework()
        self.patcher = Patcher(self.memory)
        self.traps = TrapHandler()
        self.fbt = FBT(self.framework, self.patcher, self.traps, self.isa, signatures)
        self.module = Module(name, tuple(symbols), self.patcher.original, **module)
        self.addresses = {each.name: each.value for each in symbols}

    def provide(self):
        self.fbt.provide_module(self.module)
        return self

    def probes(self):
        """The names of all probes, in the order they were made."""
        return [name for name, _, _ in self.framework.probes.values()]

    def probe(self, function, name):
        """Return (id, arg) of a probe."""
        number = self.framework.probe_lookup(self.fbt, "kernel", function, name)
        return number, self.framework.probe_arg(self.fbt, number)

    def enable(self, function, name):
        self.fbt.enable(*self.probe(function, name))

    def disable(self, function, name):
        self.fbt.disable(*self.probe(function, name))

    def hit(self, address, frame=None):
        frame = frame or FakeFrame()
        frame.registers[self.isa.registers.pc] = address
        return self.traps.invop(address, frame)

    def changed(self):
        """Return {address: byte} of what differs from the program."""
        pairs = zip(self.memory.code, self.pristine, strict=True)
        return {Memory.BASE + place: now for place, (now, then) in enumerate(pairs) if now != then}
