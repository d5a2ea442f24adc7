"""Typical wrong answers by sheet: each costs the points of a part, with a line that says why."""

from tests.trapline.lab.course.solutions.solving import Wrong

_X86, _RISC = "x86_64 i386", "aarch64 riscv64"
_ANSWERS = "answers.toml"

WRONG = {
    1: (
        Wrong(_ANSWERS, 'entry_patch = "', 'entry_patch = "00', "entry_patch", "is not right"),
        Wrong(_ANSWERS, 'returns = "', 'returns = "1', "returns", "is not right"),
    ),
    2: (
        Wrong("relative.s", "// mine\n", "nop\n//", "relative.s", "'nop' does the same at any address"),
        Wrong("same.s", "// mine\n", "nop\n//", "same.s", "'nop'"),
    ),
    3: (
        Wrong("calls.d", "[execname]", "[probename]", "calls.d", "@calls is not right for"),
        Wrong("bytes.d", " && (int)arg0 > 0", " && arg0 > 100000", "bytes.d", "no aggregation '@bytes'"),
    ),
    4: (
        Wrong("breakpoint.py", 'cpu["pc"] = address', "_ = address", "the displaced instruction", "again and again"),
        Wrong(
            "breakpoint.py",
            "    cpu.flush(address, len(BREAKPOINT))\n", "", "code that has run before", "executes the old", _RISC,
        ),
        Wrong("breakpoint.py", '"0290"', '"73001000"', "its length", "belongs to another instruction", "riscv64"),
        Wrong("breakpoint.py", '"cc"', '"cccc"', "its length", "belongs to another instruction", _X86),
        Wrong("breakpoint.py", '"000020d4"', '"00000000"', "the CPU takes it", "takes no breakpoint", "aarch64"),
        Wrong("breakpoint.py", "cpu.write(address, saved)", "pass", "taken out", "not what it was"),
    ),
    5: (
        Wrong("sites.py", "range(begin, end + 1)", "(begin, end)", "breakpoints in counter.s", "not returned", _RISC),
        Wrong(
            "sites.py",
            "if index not in bad]", 'if "lock" not in one.text]', "breakpoints in counter.s", "does no harm", _X86,
        ),
        Wrong("sites.py", "not inside & targets", "True", "jumps in counter.s", "into the middle", _X86),
        Wrong("sites.py", "index not in bad and", "", "jumps in counter.s", "with a probe", _RISC),
    ),
    6: (
        Wrong("returns.py", "while calls[-1][0] < sp:", "while False:", "longjmp", "program(3, 2)"),
        Wrong("returns.py", "if address != self.trampoline:", "if True:", "a jump to another function", "trampoline"),
        Wrong("returns.py", "setdefault(task,", "setdefault(0,", "one call", "line"),
        Wrong("returns.py", "calls = self.tasks[task]", "calls = self.tasks[1]", "two processes", "line"),
    ),
    7: (
        Wrong("slot.py", 'return "defer", None', "return slot.address", "a signal before the copy", "returns 6"),
        Wrong(
            "slot.py", 'return "defer", None', 'return "deliver", slot.address',
            "a signal before the copy", "started twice",
        ),
        Wrong(
            "slot.py", 'return "deliver", slot.address + slot.length', 'return "deliver", pc',
            "a signal after the copy", "where the program has no instruction",
        ),
    ),
    8: (
        Wrong("handler.py", "self.missed += 1", "self.missed += 1; return", "a trap in a trap", "again and again"),
        Wrong("handler.py", "if cpu.number in self.busy:", "if self.busy:", "two CPUs", "CPU 1: the probes"),
        Wrong(
            "handler.py", "except ProbeError:\n                pass", "except KeyError:\n                pass",
            "an error in the probe's program", "gets the error",
        ),
    ),
    9: (
        Wrong("provider.py", "self.patcher.remove(tracepoint)", "pass", "it fires once", "alpha(5) 2 times"),
        Wrong("provider.py", "        return answer", "        return 0", "it fires once", "no probe claims"),
        Wrong(
            "provider.py", "            return 0\n        number, t", "            return 1\n        number, t",
            "breakpoints of others", "",
        ),
    ),
    10: (
        Wrong("rules.py", "def second(code):", "def second(code):\n    return\n", "second() is mended", "any more"),
        Wrong(_ANSWERS, 'first = "', 'first = "nop" #', "the first bug is found", "does the same"),
    ),
}  # fmt: skip
