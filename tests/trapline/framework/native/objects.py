"""Random DIF objects."""

from __future__ import annotations

from hypothesis import strategies as st

from trapline.framework.base.dif import Op, Subr, Var, encode_branch, encode_index, encode_registers
from trapline.framework.base.program import Difo, TypeKind

WORDS = st.one_of(st.integers(0, 20), st.integers(0, (1 << 64) - 1), st.sampled_from([1 << 63, (1 << 64) - 1]))
REGISTERS = st.integers(1, 7)
THREE = [Op.OR, Op.XOR, Op.AND, Op.SLL, Op.SRL, Op.SRA, Op.SUB, Op.ADD, Op.MUL, Op.SDIV, Op.UDIV, Op.SREM, Op.UREM]
BRANCHES = [op for op in Op if op.name.startswith("B")]
LOADS = [op for op in Op if op.name.startswith(("LDS", "LDU", "LDX", "ULD", "RLD"))]
STORES = [Op.STB, Op.STH, Op.STW, Op.STX]
SMALL = st.one_of(st.integers(-3, 70).map(lambda n: n & (1 << 64) - 1), WORDS)
TEXTS = b"\0Ab/cdef/Ab\0b/\0-123xyz\0 \t+0X1fg\0//a//b//\0"
SUBROUTINES = [
    Subr.STRLEN, Subr.STRJOIN, Subr.SUBSTR, Subr.STRCHR, Subr.STRRCHR, Subr.STRSTR, Subr.INDEX, Subr.RINDEX,
    Subr.COPYIN, Subr.COPYINSTR, Subr.ALLOCA, Subr.BCOPY, Subr.TOUPPER, Subr.TOLOWER, Subr.LLTOSTR, Subr.HTONS,
    Subr.HTONL, Subr.NTOHLL, Subr.BASENAME, Subr.STRTOLL, Subr.DIRNAME, Subr.INET_NTOA, Subr.MEMREF, Subr.MEMSTR,
    Subr.COPYINTO, Subr.CLEANPATH, Subr.INET_NTOA6, Subr.INET_NTOP, Subr.STRTOK, Subr.JSON, Subr.STRTOK,
]  # fmt: skip
# Pieces of text for the subroutines that read a grammar; too short and too long ones, and broken ones.
JSON_TEXTS = ['{"a":[1,{"b":"x"}],"c":-2.5e1}', '[[],{},"\\u00eF",tru', "[true,null ,false, 0x1]", '{"a" : {"":7 }}',
              '[ 12 ,"[}\\"", [3 ] ]', '{"a":nullx,"b":1}', '{"b]":[1]]', '"s" ', "-",
              "[-1.x,2]", '{"a":"\\q","b":{}}']  # fmt: skip
JSON_PATHS = [
    "a[1].b",
    "[1]",
    "a",
    "",
    "[2][0]",
    "b",
    "a.",
    "[ 1x]",
    "c",
    "[-1]",
    "[99999999999999999999]",
    "b]",
    "[3]",
]
PATH_PIECES = ["/", ".", "..", "a", "bc", "//", "/./", "/../", "..."]
TOKEN_PIECES = ["a", "b", "/", ",", "ab", "//", ""]
BUILTINS = [Var.ARG0, Var.ARG3, Var.ARG7, Var.PID, Var.TIMESTAMP, Var.EXECNAME, Var.PROBEFUNC, Var.EPID, Var.CPU]


def _three(draw, _place, _end):
    return encode_registers(draw(st.sampled_from(THREE)), draw(REGISTERS), draw(REGISTERS), draw(REGISTERS))


def _two(draw, _place, _end):
    return encode_registers(draw(st.sampled_from([Op.NOT, Op.MOV, *LOADS])), draw(REGISTERS), 0, draw(REGISTERS))


def _compare(draw, _place, _end):
    op = draw(st.sampled_from([Op.CMP, Op.TST, Op.SCMP]))
    return encode_registers(op, draw(REGISTERS), 0 if op is Op.TST else draw(REGISTERS), 0)


def _branch(draw, place, end):
    return encode_branch(draw(st.sampled_from(BRANCHES)), draw(st.integers(place + 1, end)))


def _store(draw, _place, _end):
    return encode_registers(draw(st.sampled_from(STORES)), draw(REGISTERS), 0, draw(REGISTERS))


def _allocate(draw, _place, _end):
    if draw(st.booleans()):
        return encode_registers(Op.ALLOCS, draw(REGISTERS), 0, draw(REGISTERS))
    return encode_registers(Op.COPYS, draw(REGISTERS), draw(REGISTERS), draw(REGISTERS))


def _constant(draw, _place, _end):
    op = draw(st.sampled_from([Op.SETX, Op.SETS]))
    return encode_index(op, draw(st.integers(0, 3)), draw(REGISTERS))


def _builtin(draw, _place, _end):
    return encode_index(Op.LDGS, draw(st.sampled_from(BUILTINS)), draw(REGISTERS))


def _call(draw, _place, _end):
    return encode_index(Op.CALL, draw(st.sampled_from(SUBROUTINES)), draw(REGISTERS))


def _tuple(draw, _place, _end):
    op = draw(st.sampled_from([Op.PUSHTV, Op.PUSHTV, Op.PUSHTR, Op.POPTS, Op.FLUSHTS]))
    if op in {Op.POPTS, Op.FLUSHTS}:
        return encode_registers(op, 0, 0, 0)
    kind = draw(st.sampled_from([TypeKind.CTF, TypeKind.STRING])) if op is Op.PUSHTR else TypeKind.CTF
    return encode_registers(op, kind, draw(st.sampled_from([0, 0, 3, 4])), draw(REGISTERS))


KINDS = [
    _three, _three, _two, _compare, _compare, _branch, _branch, _store, _store, _allocate, _constant, _builtin, _tuple,
    _tuple, _call,
]  # fmt: skip


@st.composite
def objects(draw):
    """A valid DIF object: arithmetic, comparisons, forward branches, loads and stores, pushes."""
    code = [encode_index(Op.SETX, number, number + 1) for number in range(4)]
    code += [encode_index(Op.SETS, number, number + 5) for number in range(1, 3)]
    end = len(code) + draw(st.integers(1, 25))
    code += [draw(st.sampled_from(KINDS))(draw, place, end) for place in range(len(code), end)]
    code.append(encode_registers(Op.RET, 0, 0, draw(REGISTERS)))
    return Difo(tuple(code), tuple(draw(WORDS) for _ in range(4)), b"\0abcabc\0bc\0")


@st.composite
def calls(draw):
    """A DIF object that calls a subroutine with strings and numbers, and takes what comes of it to pieces."""
    code = [encode_index(Op.SETX, number, number + 1) for number in range(4)]
    for _ in range(draw(st.integers(1, 3))):
        code.append(encode_registers(Op.FLUSHTS, 0, 0, 0))
        for _ in range(draw(st.integers(0, 3))):
            if draw(st.booleans()):
                code.append(encode_index(Op.SETS, draw(st.integers(0, len(TEXTS) - 1)), 5))
                code.append(encode_registers(Op.PUSHTR, TypeKind.STRING, 0, draw(st.sampled_from([5, 5, 6]))))
            else:
                code.append(encode_registers(Op.PUSHTV, 0, 0, draw(st.sampled_from([1, 2, 3, 4, 6]))))
        code.append(_call(draw, 0, 0))
        code.append(encode_registers(Op.MOV, draw(REGISTERS), 0, 6))
    code.append(encode_registers(Op.LDUB, 6, 0, 5) if draw(st.booleans()) else encode_registers(Op.SCMP, 5, 6, 0))
    code.append(encode_registers(Op.RET, 0, 0, draw(st.sampled_from([5, 6]))))
    return Difo(tuple(code), tuple(draw(SMALL) for _ in range(4)), TEXTS)


def _set(register, at):
    return encode_index(Op.SETS, at, register)


@st.composite
def grammars(draw):
    """A DIF object that calls subroutines which read a grammar: JSON, paths, addresses, tokens."""
    strings, code = bytearray(b"\0"), []

    def push(text, kind=TypeKind.STRING):
        code.append(_set(1, len(strings)))
        strings.extend(text if isinstance(text, bytes) else text.encode())
        if kind == TypeKind.STRING:
            strings.append(0)
            code.append(encode_registers(Op.PUSHTR, kind, 0, 1))
        else:
            code.append(encode_registers(Op.PUSHTV, 0, 0, 1))

    def joined(pieces):
        return "".join(draw(st.lists(st.sampled_from(pieces), max_size=8)))

    for again in range(draw(st.integers(1, 3))):
        code.append(encode_registers(Op.FLUSHTS, 0, 0, 0))
        number = draw(st.sampled_from([Subr.JSON, Subr.CLEANPATH, Subr.INET_NTOA6, Subr.INET_NTOP, Subr.STRTOK]))
        if number == Subr.JSON:
            text = draw(st.sampled_from(JSON_TEXTS)) if draw(st.booleans()) else joined(JSON_TEXTS)
            cut = draw(st.integers(0, 3))
            push(text[cut if cut < 2 else 0 : draw(st.integers(0, 40))])
            push(draw(st.sampled_from(JSON_PATHS)))
        elif number == Subr.CLEANPATH:
            push(joined(PATH_PIECES))
        elif number == Subr.STRTOK:
            if again and draw(st.booleans()):
                code.append(encode_registers(Op.PUSHTV, 0, 0, 0))
            else:
                push(joined(TOKEN_PIECES))
            push(joined(TOKEN_PIECES))
        else:
            if number == Subr.INET_NTOP:
                code.append(encode_index(Op.SETX, draw(st.integers(0, 2)), 2))
                code.append(encode_registers(Op.PUSHTV, 0, 0, 2))
            groups = st.sampled_from([b"\0\0", b"\0\0", b"\0\0", b"\0\1", b"\xff\xff", b"\1\0", b"\x12\xaf"])
            push(b"".join(draw(st.lists(groups, min_size=8, max_size=8))), TypeKind.CTF)
        code.append(encode_index(Op.CALL, number, 3))
    code.append(encode_registers(Op.RET, 0, 0, 3))
    return Difo(tuple(code), (2, 28, 5), bytes(strings) + b"\0")
