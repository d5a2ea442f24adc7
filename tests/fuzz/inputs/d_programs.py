"""D programs: tokens of true programs in new orders, deep nesting, long numbers."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Final

from tests.fuzz.case import Fuzzer
from tests.fuzz.mutation import damage_words
from tests.trapline.d.support import compile_text
from trapline.d.codegen.disassemble import disassemble
from trapline.d.errors import CompileError
from trapline.dof import decode, encode

_TESTS: Final = Path(__file__).parents[2]
_TOKEN: Final = re.compile(r"\s+|\w+|\"(?:[^\"\\]|\\.)*\"|[<>=!&|+\-*/%^]=|&&|\|\||->|<<|>>|\S")
_WORDS: Final = (
    *"{ } ( ) [ ] ; , : ? . -> = == += ++ -- ! ~ & | && || ^^ < << % / @ @a this-> self-> ` $1 $$1 $pid arg0 args[0]"
    " int char void struct union enum typedef inline translator xlate sizeof offsetof stringof string const unsigned"
    ' if else count() sum(1) quantize(1) lquantize(1,2,3) stack() printf("%d",1) trace(1) exit(0) copyin(0,1)'
    " BEGIN END tick-1s profile:::tick-1 pid$target::: /1/ 0 1 -1 0x 08 1e9 'a' 'ab' \"\" \"\\x\" #pragma /* */"
    ' strtok("a","b") alloca(8) bcopy(0,0,0) NULL int64_t uintptr_t curthread execname errno'.split(),
    "\n", "\t", "\0", "²", "é", "9" * 5000, "$" + "9" * 4000, "#pragma D option quiet\n", '#line 99999999999 "x"\n',
)  # fmt: skip
# An error whose message has the prototype on a line of its own, as libdtrace's has (dt_printf.c).
_PROTOTYPE: Final = "D_PRINTF_ARG_TYPE"
# What nests, each with what closes it.
_NESTS: Final = (
    ("(", "1", ")"), ("(int)", "1", ""), ("-", "1", ""), ("!", "1", ""), ("x[", "0", "]"), ("a=", "1", ""),
    ("1 ? ", "1", " : 0"), ("*", "p", ""), ("strlen(", '""', ")"), ("1+(", "1", ")"), ("sizeof ", "1", ""),
)  # fmt: skip


class DPrograms(Fuzzer):
    """D programs."""

    name = "d"
    expected = (CompileError,)
    seconds = 10.0
    quick = 300

    def __init__(self) -> None:
        self._seeds: list[list[str]] = []

    def _programs(self) -> list[list[str]]:
        if not self._seeds:
            texts = [path.read_text() for path in sorted((_TESTS / "trapline" / "d" / "toolkit").glob("*.d"))]
            texts += [
                'BEGIN { @a[1, "x"] = sum(2); printa(@a); exit(0); }',
                "int x[int]; BEGIN { x[1] = x[2] + 3; }",
                "struct s { int a : 3; char b[4]; }; BEGIN { this->p = (struct s *)alloca(8); this->p->a = 1; }",
            ]
            self._seeds = [_TOKEN.findall(text) for text in texts]
        return self._seeds

    def make(self, random: Random) -> bytes:
        """Make a program."""
        if random.random() < 0.01:
            opening, middle, closing = random.choice(_NESTS)
            depth = random.choice((10, 30, 100, 300, 1000) if random.random() < 0.95 else (20_000,))
            return f"BEGIN {{ trace({opening * depth}{middle}{closing * depth}); }}".encode()
        tokens = random.choice(self._programs())
        if random.random() < 0.9:  # whole ones are long: most of the time would go into reading what is well
            start = random.randrange(len(tokens))
            tokens = tokens[start : start + random.randint(5, 60)]
            if random.random() < 0.6:
                tokens = ["BEGIN", " ", "{", *tokens, ";", "}"]
        words = [f" {word} " for word in _WORDS]
        return "".join(damage_words(random, tokens, words, random.choice((1, 1, 2, 6)))).encode()

    def run(self, case: bytes) -> str:
        """Compile, and convert the result to DOF and back."""
        try:
            program = compile_text(case.decode())
        except CompileError as error:
            if error.tag != _PROTOTYPE:
                raise
            return f"refused with a prototype: {error}"
        assert len(decode(encode(program)).ecbs) == len(program.ecbs)
        for ecb in program.ecbs:
            for action in ecb.actions:
                if action.difo is not None:
                    list(disassemble(action.difo, 1, 256))
        return f"compiled: {len(program.ecbs)} ECBs"
