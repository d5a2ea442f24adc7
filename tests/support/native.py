"""Small enablings in machine code for tests: they count, and keep the arguments."""

import ctypes
from functools import cache

from emu.native.block import Block
from emu.native.builder import Module
from emu.native.link import Linked

KEPT = 64
_UPCALL = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint64)


class _Words(Block):
    count: int
    upcall: int
    seen: int


@cache
def _code():
    module = Module()
    f = module.function("run", 3)
    first, arguments, core = f.parameters
    count = f.load(first, _Words.offset("count"))
    f.store(first, f.add(count, 1), _Words.offset("count"))
    with f.when(f.ult(count, KEPT)):
        f.copy(f.add(f.load(first, _Words.offset("seen")), f.mul(count, 40)), arguments, 40)
    with f.when(f.ne(f.load(first, _Words.offset("upcall")), 0)):
        f.call(f.load(first, _Words.offset("upcall")), arguments, core)
    f.ret()
    return Linked(module.compiled("test"))


class Enabling:
    """An enabling that calls `upcall(arguments, core)`, addresses both, if there is one."""

    def __init__(self, upcall=None):
        self._array = (ctypes.c_uint64 * (5 * KEPT))()
        self._upcall = _UPCALL(upcall) if upcall else None
        at = ctypes.cast(self._upcall, ctypes.c_void_p).value if upcall else 0
        self.words = _Words(0, at, ctypes.addressof(self._array))

    @property
    def count(self):
        return self.words.count

    def seen(self):
        """The arguments of each firing, in order."""
        return [tuple(self._array[5 * index : 5 * index + 5]) for index in range(min(self.count, KEPT))]


_KEPT = []


def runs(*enablings):
    """What `Framework.native_runs` returns for a probe with these enablings."""
    pairs = (ctypes.c_uint64 * (2 * len(enablings)))()
    for index, enabling in enumerate(enablings):
        pairs[2 * index] = _code().address("run")
        pairs[2 * index + 1] = enabling.words.address
    words = (ctypes.c_uint64 * 2)(len(enablings), ctypes.addressof(pairs))
    _KEPT.append((words, pairs, enablings))
    return ctypes.addressof(words)


class _LogWords(Block):
    count: int
    limit: int
    place: int


class _Place(Block):
    log: int
    number: int


@cache
def _log_code():
    module = Module()
    f = module.function("note", 3)
    first, arguments, _ = f.parameters
    log = f.load(first, _Place.offset("log"))
    count = f.load(log, _LogWords.offset("count"))
    f.store(log, f.add(count, 1), _LogWords.offset("count"))
    with f.when(f.ult(count, f.load(log, _LogWords.offset("limit")))):
        place = f.add(f.load(log, _LogWords.offset("place")), f.mul(count, 48))
        f.store(place, f.load(first, _Place.offset("number")))
        f.copy(f.add(place, 8), arguments, 40)
    f.ret()
    return Linked(module.compiled("test"))


class LoggingFramework:
    """A framework that logs firings in their order: Python's in Python, machine code's in machine code."""

    def __init__(self, *, native, limit=200_000):
        self._native = native
        self._array = (ctypes.c_uint64 * (6 * limit))()
        self._words = _LogWords(0, limit, ctypes.addressof(self._array))
        self._runs = {}
        self._kept = []
        self.probes = [None]
        self.by_python = 0

    def register(self, provider):
        """Take a provider."""

    def probe_create(self, *details):
        """Take a probe."""
        self.probes.append(details[-1])
        return len(self.probes) - 1

    def probe_lookup(self, *_):
        """No probe is there twice."""
        return 0

    def probe_arg(self, _provider, probe_id):
        """What the probe was made with."""
        return self.probes[probe_id]

    def native_runs(self, probe_id):
        """One enabling, which logs."""
        if not self._native:
            return 0
        if probe_id not in self._runs:
            place = _Place(ctypes.addressof(self._words), probe_id)
            pair = (ctypes.c_uint64 * 2)(_log_code().address("note"), place.address)
            words = (ctypes.c_uint64 * 2)(1, ctypes.addressof(pair))
            self._kept += (place, pair, words)
            self._runs[probe_id] = ctypes.addressof(words)
        return self._runs[probe_id]

    def probe(self, probe_id, *arguments):
        """Log a firing of Python's."""
        self.by_python += 1
        count = self._words.count
        self._words.count += 1
        if count < self._words.limit:
            self._array[6 * count : 6 * count + 6] = [probe_id, *arguments, *[0] * (5 - len(arguments))]

    @property
    def fired(self):
        """How many firings there were."""
        return self._words.count

    def log(self):
        """The firings: (probe id, five arguments) each."""
        count = min(self._words.count, self._words.limit)
        flat = self._array[: 6 * count]
        return [tuple(flat[index : index + 6]) for index in range(0, len(flat), 6)]
