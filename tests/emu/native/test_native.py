"""Machine code of the builder does what its methods say, and finds its symbols."""

import ctypes
import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

from emu.native.block import Block
from emu.native.builder import Module
from emu.native.compile import compiled
from emu.native.link import Linked, LinkError
from emu.native.operations import Condition

MASK = (1 << 64) - 1
WORDS = st.integers(0, MASK) | st.integers(0, 40) | st.sampled_from((MASK, 1 << 63, (1 << 63) - 1))


def callable_of(linked, name, parameters):
    return ctypes.CFUNCTYPE(ctypes.c_uint64, *[ctypes.c_uint64] * parameters)(linked.address(name))


def build(write, parameters=2, symbols=None):
    module = Module()
    function = module.function("f", parameters)
    write(function, *function.parameters)
    linked = Linked(module.compiled("test"), symbols)
    call = callable_of(linked, "f", parameters)
    call.linked = linked
    return call


def signed(word):
    return word - (word >> 63 << 64)


BINARY = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "and_": operator.and_,
    "or_": operator.or_,
    "xor": operator.xor,
    "udiv": lambda a, b: a // (b or 1),
    "urem": lambda a, b: a % (b or 1),
    "eq": lambda a, b: int(a == b),
    "ne": lambda a, b: int(a != b),
    "ult": lambda a, b: int(a < b),
    "ule": lambda a, b: int(a <= b),
    "ugt": lambda a, b: int(a > b),
    "uge": lambda a, b: int(a >= b),
    "slt": lambda a, b: int(signed(a) < signed(b)),
    "sle": lambda a, b: int(signed(a) <= signed(b)),
    "sgt": lambda a, b: int(signed(a) > signed(b)),
    "sge": lambda a, b: int(signed(a) >= signed(b)),
    "shl": lambda a, b: a << (b & 63),
    "lshr": lambda a, b: a >> (b & 63),
    "ashr": lambda a, b: signed(a) >> (b & 63),
}


@pytest.fixture(scope="module")
def operations():
    """All operations in one module: a function stores the result of each into an array."""
    module = Module()
    function = module.function("all", 3)
    left, right, results = function.parameters
    for place, name in enumerate(BINARY):
        other = right
        if name in {"shl", "lshr", "ashr"}:
            other = function.and_(right, 63)
        elif name in {"udiv", "urem"}:
            other = function.select(function.eq(right, 0), 1, right)
        value = getattr(function, name)(left, other)
        function.store(results, function.flag(value) if isinstance(value, Condition) else value, 8 * place)
    function.ret()
    linked = Linked(module.compiled("test"))
    return linked, callable_of(linked, "all", 3)


@settings(max_examples=60, deadline=None)
@given(left=WORDS, right=WORDS)
def test_each_operation_is_pythons_own(operations, left, right):
    results = (ctypes.c_uint64 * len(BINARY))()
    operations[1](left, right, ctypes.addressof(results))
    for place, (name, expected) in enumerate(BINARY.items()):
        assert results[place] == expected(left, right) & MASK, name


def test_a_loop_adds_up_what_an_array_holds():
    def write(function, address, count):
        total, place = function.variable(0), function.variable(0)
        with function.loop() as loop:
            loop.leave_if(function.uge(place.get(), count))
            total.set(function.add(total.get(), function.load(address, function.shl(place.get(), 2), 4, signed=True)))
            place.set(function.add(place.get(), 1))
        function.ret(total.get())

    numbers = (ctypes.c_int32 * 5)(3, -10, 7, 100, 1)
    assert build(write)(ctypes.addressof(numbers), 4) == 100
    assert build(write)(ctypes.addressof(numbers), 2) == -7 & MASK


def test_a_choice_and_a_condition_take_one_way():
    def write(function, left, right):
        result = function.variable(0)
        with function.choice(function.ult(left, right)) as (then, otherwise):
            with then:
                result.set(1)
            with otherwise:
                result.set(2)
        with function.when(function.eq(left, right), likely=False):
            result.set(function.add(result.get(), 10))
        function.ret_if(function.eq(right, 99), 99)
        function.ret(result.get())

    call = build(write)
    assert [call(1, 2), call(2, 1), call(2, 2), call(0, 99)] == [1, 2, 12, 99]


def test_cases_choose_by_number():
    def write(function, value, _):
        result = function.variable(0)
        with function.cases(value) as case:
            with case(1, 2):
                result.set(10)
            with case(7):
                result.set(70)
        function.ret(result.get())

    assert [build(write)(value, 0) for value in (0, 1, 2, 7, 8)] == [0, 10, 10, 70, 0]


def test_many_cases_are_a_table():
    def write(function, value, _):
        with function.cases(value) as case:
            for number in range(40):
                with case(number):
                    function.ret(number * number % 17)
        function.ret(1000)

    call = build(write)
    assert [call(value, 0) for value in range(42)] == [value * value % 17 for value in range(40)] + [1000, 1000]


def test_memory_is_read_written_copied_filled_and_compared():
    def write(function, target, source):
        function.copy(target, source, 8)
        function.fill(function.add(target, 8), 0xAB, 4)
        function.store(target, function.load(source, 0, 1, signed=True), 16, 2)
        function.ret(function.flag(function.same(target, source, 8)))

    target, source = ctypes.create_string_buffer(24), ctypes.create_string_buffer(bytes(range(0x80, 0x88)), 8)
    assert build(write)(ctypes.addressof(target), ctypes.addressof(source)) == 1
    assert target.raw == bytes(range(0x80, 0x88)) + b"\xab" * 4 + bytes(4) + b"\x80\xff" + bytes(6)


def test_room_and_constant_bytes_are_there():
    def write(function, place, _):
        room = function.buffer(32)
        data = function.module.data("text", b"hello, world\0\0\0\0")
        function.copy(room, data, 16)
        function.ret(function.load(room, place, 1))

    call = build(write)
    assert bytes(call(place, 0) for place in range(5)) == b"hello"


def test_functions_call_each_other_symbols_and_addresses():
    module = Module()
    twice = module.function("twice", 1, local=True)
    twice.ret(twice.add(twice.parameters[0], twice.parameters[0]))
    function = module.function("f", 1)
    (address,) = function.parameters
    first = function.call(module.external("trapline_test_add", 2), 20, 1)
    second = function.call(address, function.load(module.symbol("trapline_test_word")), 2)
    function.ret(function.call(twice, function.add(first, second)))
    add = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)(lambda left, right: left + right)
    word = ctypes.c_uint64(300)
    at = ctypes.cast(add, ctypes.c_void_p).value
    linked = Linked(module.compiled("test"), {"trapline_test_add": at, "trapline_test_word": ctypes.addressof(word)})
    assert callable_of(linked, "f", 1)(at) == 2 * (21 + 302)


def test_a_block_is_words_with_names():
    class Counters(Block):
        hits: int
        misses: int

    class More(Counters):
        lost: int

    more = More(hits=5, lost=-1)
    assert (more.hits, more.misses, more.lost) == (5, 0, MASK)
    assert (More.offset("hits"), More.offset("misses"), More.offset("lost")) == (0, 8, 16)

    def write(function, block, _):
        function.store(block, function.add(function.load(block, More.offset("hits")), 1), More.offset("misses"))
        function.ret()

    build(write)(more.address, 0)
    assert more.misses == 6


@pytest.mark.parametrize(
    ("code", "symbols", "message"),
    [
        (b"MZ", {}, "not a 64-bit ELF file"),
        (None, {}, "trapline_nowhere"),
    ],
)
def test_what_cannot_be_linked_says_why(code, symbols, message):
    module = Module()
    function = module.function("f", 0)
    function.ret(function.call(module.external("trapline_nowhere", 0)))
    with pytest.raises(LinkError, match=message):
        Linked(module.compiled("test") if code is None else code, symbols)
    linked = Linked(module.compiled("test"), {"trapline_nowhere": 1})
    with pytest.raises(LinkError, match="no function 'g'"):
        linked.address("g")


def test_what_was_compiled_is_not_compiled_again(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAPLINE_CACHE", str(tmp_path))
    asked = []

    def source():
        asked.append(1)
        return "define i64 @one() {\n  ret i64 1\n}\n"

    codes = {compiled("test", b"what it was made from", source) for _ in range(3)}
    assert len(codes) == 1
    assert len(asked) == 1
    assert callable_of(Linked(codes.pop()), "one", 0)() == 1
