"""Random D programs: every kind of statement, over a kernel that is busy."""

from __future__ import annotations

import random

PROBES = [
    "fbt::sys_read:entry", "fbt::sys_read:return", "fbt::sys_write:entry", "fbt::*alloc*:entry", "fbt::*alloc*:return",
    "syscall:::entry", "syscall:::return", "syscall::write:entry", "fbt::*lookup*:entry", "fbt::*copy*:return",
    "kinst::sys_read:", "kinst::sys_write:", "vfs:::", "dtmalloc:::", "sched:::", "vminfo:::", "lockstat:::", "proc:::",
    "profile-4999", "tick-500us", "sysinfo:::", "priv:::",
]  # fmt: skip
DECLARATIONS = """
int64_t g0; uint64_t g1; string s0;
self int64_t i0; self string t0;
this int64_t l0; this string m0;
int64_t counts[int64_t, string]; string names[int64_t]; int64_t places[string];
self int64_t marks[int64_t];
"""
NUMBERS = [
    "g0", "g1", "self->i0", "this->l0", "arg0", "arg1", "arg2", "pid", "tid", "ppid", "cpu", "epid", "id", "uid",
    "timestamp % 1000", "errno", "ipl", "stackdepth", "arg5", "arg7", "(int64_t)caller", "(int64_t)curthread",
    "walltimestamp % 77", "vtimestamp % 5", "(int64_t)uregs[0]", "curthread->td_tid", "rand() % 9",
]  # fmt: skip
STRINGS = ["execname", "probefunc", "probename", "probemod", "probeprov", "s0", "self->t0", "this->m0", '"text"', '""',
           "copyinstr(arg1)", "copyinstr(arg0, 9)", "stringof(arg0)", "curthread->td_name"]  # fmt: skip
# What was to blame, where that is an address and not in DTrace's own memory, whose addresses differ by consumer.
ERROR = """ERROR { @errors[arg1, arg2, arg4] = count(); }
ERROR /(arg4 == 1 || arg4 == 2) && arg5 >> 48 != 0x0d7a/ { trace(arg5); }
"""
AGGREGATIONS = ["count()", "sum({n})", "min({n})", "max({n})", "avg({n})", "stddev({n})", "quantize({n})",
                "lquantize({n}, -10, 90, 7)", "llquantize({n}, 10, 0, 6, 20)", "quantize({n}, {n})"]  # fmt: skip
KEYS = ["", "[{n}]", "[{s}]", "[execname, probefunc]", "[{n}, {s}, {n}]", "[stack()]", "[stack(3)]", "[ustack(2)]",
        "[sym((uint64_t){n})]"]  # fmt: skip
STORES = ["g0 = {n}", "g1 += {n}", "g0++", "self->i0 = {n}", "self->i0 += {n}", "this->l0 = {n}", "s0 = {s}",
          "self->t0 = {s}", "this->m0 = {s}", "counts[{n}, {s}] = {n}", "counts[{n} % 5, execname]++",
          "names[{n} % 9] = {s}", "places[{s}] = {n}", "self->marks[{n} % 4] = {n}", "places[probefunc] += {n}",
          "self->t0 = NULL", "names[{n} % 9] = NULL", "self->i0 = 0"]  # fmt: skip
RECORDS = ["trace({n})", "trace({s})", 'printf("%d %s", {n}, {s})', 'printf("%x", {n})', "stack()", "stack(4)",
           "ustack()", "trace((char)({n}))", "trace((short)({n}))", "tracemem(curthread, 16)", 'printf("%s", {s})',
           'printf("%d", (int)({n}))']  # fmt: skip
ON_STRINGS = ["strjoin({s}, {s})", "substr({s}, {k})", "substr({s}, {k}, {k})", "basename({s})", "dirname({s})",
              "toupper({s})", "lltostr({n})", "strchr({s}, 'e')", "cleanpath({s})", 'strtok({s}, "a_")',
              'strtok(NULL, "es")', "json({s}, {s})"]  # fmt: skip
TO_NUMBERS = ["strlen({s})", "index({s}, {s})", "rindex({s}, {s})", "strtoll({s})", "({s} == {s})", "({s} < {s})",
              "*(int *)({n})", "*(uint64_t *)(arg1 & ~7)", "*(uint8_t *)arg0", "*(char *)curthread", "htonl({n})",
              "counts[{n}, {s}]", "places[{s}]", "self->marks[{n}]", "progenyof({n})",
              "*(int *)copyin(arg1, 4)", "*(short *)copyin({n}, 8)", "strlen(copyinstr(arg1))",
              "ustackdepth"]  # fmt: skip
OPERATORS = ["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "<", "<=", "==", "!=", "&&", "||"]


class Programs:
    """A generator; the same seed makes the same programs."""

    def __init__(self, seed):
        self._random = random.Random(seed)  # noqa: S311  programs that are the same every time

    def _one(self, choices):
        return self._random.choice(choices)

    def _filled(self, template, depth):
        """Put expressions into a template: {n} a number, {s} a string, {k} a constant."""
        parts = []
        for piece in template.split("{"):
            if parts:
                kind, _, rest = piece.partition("}")
                made = {"n": self.number, "s": self.string, "k": lambda _depth: str(self._random.randrange(-2, 6))}
                parts.append(made[kind](depth + 1) + rest)
            else:
                parts.append(piece)
        return "".join(parts)

    def number(self, depth=0):
        """An expression of integer type."""
        draw = self._random.random()
        if depth > 2 or draw < 0.4:
            return self._one(NUMBERS)
        if draw < 0.5:
            return str(self._one([0, 1, 7, -3, 4096, 0x7FFFFFFF, 1 << 40, (1 << 63) - 1]))
        if draw < 0.75:
            return f"({self.number(depth + 1)} {self._one(OPERATORS)} {self.number(depth + 1)})"
        if draw < 0.85:
            return f"({self.number(depth + 1)} ? {self.number(depth + 1)} : {self.number(depth + 1)})"
        return self._filled(self._one(TO_NUMBERS), depth)

    def string(self, depth=0):
        """An expression of type string."""
        draw = self._random.random()
        if depth > 2 or draw < 0.6:
            return self._one(STRINGS)
        if draw < 0.7:
            return self._filled("names[{n}]", depth)
        return self._filled(self._one(ON_STRINGS), depth)

    def _statement(self):
        draw = self._random.random()
        if draw < 0.25:
            keys = self._one(KEYS)
            which = self._random.randrange(len(AGGREGATIONS))
            return self._filled(f"@a{which}_{keys.count('{')}_{len(keys)}{keys} = {AGGREGATIONS[which]}", 0)
        if draw < 0.55:
            return self._filled(self._one(STORES), 0)
        return self._filled(self._one(RECORDS), 0)

    def _clause(self):
        probes = ",\n".join(self._random.sample(PROBES, self._random.randrange(1, 3)))
        predicate = f"\n/{self.number()}/" if self._random.random() < 0.5 else ""
        body = [self._statement() for _ in range(self._random.randrange(0, 5))]
        if self._random.random() < 0.08:
            body = ["self->spec = speculation()"]
        elif self._random.random() < 0.08:
            finish = self._one(["commit", "discard"])
            return (
                f"{probes}\n/self->spec/\n{{ speculate(self->spec); trace({self.number()}); }}\n"
                f"{probes}\n/self->spec && {self.number()}/\n{{ {finish}(self->spec); self->spec = 0; }}\n"
            )
        return f"{probes}{predicate}\n{{ {' '.join(f'{line};' for line in body)} }}\n"

    def program(self):
        """The text of a program."""
        errors = ERROR if self._random.random() < 0.7 else ""
        ends = "END { trace(g0); trace(s0); trace(g1); }\n"
        return DECLARATIONS + "".join(self._clause() for _ in range(self._random.randrange(1, 5))) + errors + ends
