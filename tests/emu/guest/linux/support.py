"""Running Linux programs in a guest, and their expected output."""

from dataclasses import dataclass, field
from pathlib import Path

from emu.guest.kernel.boot import images
from emu.guest.linux.fs.stdio import Standard
from emu.isa import ISAS
from trapline.consumer.tracer import Tracer
from trapline.machine import linux_machine

EXPECTED = Path(__file__).parents[4] / "testbins" / "linux" / "expected"
CASES = (
    "recursion tailcalls setjmp cxx threads signals processes memory files switchcase args markers asm divide".split()
)


@dataclass
class Ran:
    """The result of a program."""

    output: str
    instructions: int
    fired: int = 0
    problems: tuple = ()
    machine: object = None
    found: dict = field(default_factory=dict)
    """The values of aggregations, by name and keys."""

    def of(self, name):
        """Return the values of one aggregation, by their keys."""
        return {keys: value for (aggregation, keys), value in self.found.items() if aggregation == name}


def expected(case, isa):
    """Return the expected output of a case, with its exit status on the last line."""
    for name in (f"{case}.{isa}.txt", f"{case}.txt"):
        if (EXPECTED / name).is_file():
            return (EXPECTED / name).read_text()
    raise FileNotFoundError(case)


def start(isa, words, **options):
    """Start a program; return the machine and the bytes it will have printed."""
    output = bytearray()
    standard = Standard(write=output.extend, error=output.extend)
    options = {"isa": ISAS[isa], "standard": standard, "evaltime": linux_machine.EvalTime.MAIN, **options}
    return linux_machine.start(linux_machine.LinuxOptions(tuple(map(str, words)), **options)), output


def zoo(isa, case, program=None, **options):
    """Run a case of the zoo, traced by a D program if one is given."""
    return run(isa, (images.linux(ISAS[isa], "zoo"), case), program, **options)


def run(isa, words, program=None, *, zero=False, **options):
    """Run a program, traced by a D program if one is given; `zero` lets it match nothing yet."""
    machine, output = start(isa, words, **options)
    fired, found = 0, {}
    if program is None:
        machine.guest.run(None)
    else:
        with Tracer(machine.guest, machine.dtrace, target=machine.target, provide=machine.probes.provide) as tracer:
            if zero:
                tracer.session.options.set("zdefs", None)
            tracer.enable(program)
            tracer.run()
            found = {(element.name, element.keys): element.value for element in tracer.aggregations()}
            fired = sum(found.values())
            assert not tracer.faults
            assert not tracer.drops
    text = output.decode("utf-8", "replace") + f"exit {machine.guest.exit_status}\n"
    return Ran(text, machine.guest.engine.instructions, fired, tuple(machine.probes.refusals.texts), machine, found)
