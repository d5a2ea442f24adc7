"""The fuzzers, by name."""

from __future__ import annotations

from tests.fuzz.case import Fuzzer
from tests.fuzz.inputs.commands import Commands
from tests.fuzz.inputs.d_programs import DPrograms
from tests.fuzz.inputs.dof import HelperDof, KernelDof
from tests.fuzz.inputs.elf import ElfFiles
from tests.fuzz.inputs.functions import Functions
from tests.fuzz.inputs.instructions import Instructions
from tests.fuzz.inputs.judged import Judged
from tests.fuzz.inputs.kernel_calls import KernelCalls
from tests.fuzz.inputs.options import OptionValues
from tests.fuzz.inputs.stapsdt import MarkerArguments
from tests.fuzz.inputs.system_calls import SystemCalls
from tests.fuzz.inputs.types import DebugTypes
from tests.fuzz.inputs.uprobes import Filters, UprobeDefinitions

FUZZERS: dict[str, Fuzzer] = {
    fuzzer.name: fuzzer
    for fuzzer in (
        ElfFiles(),
        DebugTypes(),
        KernelDof(),
        HelperDof(),
        DPrograms(),
        UprobeDefinitions(),
        Filters(),
        MarkerArguments(),
        Instructions(),
        Judged(),
        SystemCalls(),
        KernelCalls(),
        Functions(),
        OptionValues(),
        Commands(),
    )
}
