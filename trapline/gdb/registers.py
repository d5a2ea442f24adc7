"""The registers of each ISA as gdb knows them, and the descriptions that say so to gdb.

A register has gdb's name, its size in bits, gdb's type, and the name that Unicorn knows it by
(`emu.isa.unicorn_model.UnicornModel.ids`).  The features that gdb knows have the registers that it
demands, in its order; feature `org.trapline.system` has registers of the system, which gdb only
shows.

Source: the gdb manual, appendix "Target Descriptions", "Standard Target Features".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple
from xml.sax.saxutils import quoteattr


class Field(NamedTuple):
    """A register."""

    name: str
    bits: int
    type: str = "int"
    source: str = ""
    """Unicorn's name, if it is another one; "-": there is none, and all its bits are 1."""
    group: str = ""


class Feature(NamedTuple):
    """A feature of a description."""

    name: str
    fields: tuple[Field, ...]
    types: str = ""
    """XML of the types that it defines."""


class Description(NamedTuple):
    """The registers of an ISA."""

    architecture: str
    features: tuple[Feature, ...]
    reports_before: bool = False
    """Whether gdb takes the stop of a watchpoint to be before the access, and steps over it."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """The registers by gdb's numbers."""
        return tuple(field for feature in self.features for field in feature.fields)

    def xml(self, osabi: str | None) -> str:
        """Return the description as gdb reads it (qXfer:features:read:target.xml)."""
        lines = ['<?xml version="1.0"?>', '<!DOCTYPE target SYSTEM "gdb-target.dtd">', '<target version="1.0">']
        lines.append(f"<architecture>{self.architecture}</architecture>")
        if osabi is not None:
            lines.append(f"<osabi>{osabi}</osabi>")
        number = 0
        for feature in self.features:
            lines.append(f"<feature name={quoteattr(feature.name)}>{feature.types}")
            for one in feature.fields:
                group = f" group={quoteattr(one.group)}" if one.group else ""
                lines.append(
                    f'<reg name={quoteattr(one.name)} bitsize="{one.bits}" type={quoteattr(one.type)} '
                    f'regnum="{number}"{group}/>'
                )
                number += 1
            lines.append("</feature>")
        return "\n".join((*lines, "</target>", ""))


class _Names(NamedTuple):
    """Names of one size and type."""

    names: Iterable[str]
    bits: int
    type: str = "int"

    def fields(self, sources: Mapping[str, str] | None = None, group: str = "") -> tuple[Field, ...]:
        """Return them as registers; `sources`: those that Unicorn names otherwise."""
        named = sources or {}
        return tuple(Field(name, self.bits, self.type, named.get(name, ""), group) for name in self.names)


def _numbered(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def _flags(name: str, bits: int, flags: Mapping[str, int]) -> str:
    fields = "".join(f'<field name="{flag}" start="{bit}" end="{bit}"/>' for flag, bit in flags.items())
    return f'<flags id="{name}" size="{bits // 8}">{fields}</flags>'


_EFLAGS: Final = _flags(
    "i386_eflags", 32,
    {"CF": 0, "PF": 2, "AF": 4, "ZF": 6, "SF": 7, "TF": 8, "IF": 9, "DF": 10, "OF": 11, "NT": 14, "RF": 16,
     "VM": 17, "AC": 18, "VIF": 19, "VIP": 20, "ID": 21},
)  # fmt: skip
_MXCSR: Final = _flags(
    "i386_mxcsr", 32,
    {"IE": 0, "DE": 1, "ZE": 2, "OE": 3, "UE": 4, "PE": 5, "DAZ": 6, "IM": 7, "DM": 8, "ZM": 9, "OM": 10, "UM": 11,
     "PM": 12, "FZ": 15},
)  # fmt: skip


def _vector(name: str, lanes: Mapping[str, tuple[str, int]], whole: str = "uint128") -> str:
    """Return a union of vectors: (type, number) of its lanes, by the name of the field."""
    vectors = "".join(f'<vector id="{name}_{one}" type="{kind}" count="{n}"/>' for one, (kind, n) in lanes.items())
    fields = "".join(f'<field name="{one}" type="{name}_{one}"/>' for one in lanes)
    return f'{vectors}<union id="{name}">{fields}<field name="{whole}" type="{whole}"/></union>'


_XMM: Final = _vector(
    "vec128",
    {"v4_float": ("ieee_single", 4), "v2_double": ("ieee_double", 2), "v16_int8": ("int8", 16),
     "v8_int16": ("int16", 8), "v4_int32": ("int32", 4), "v2_int64": ("int64", 2)},
)  # fmt: skip
_X87_CONTROL: Final = {
    "fctrl": "fpcw", "fstat": "fpsw", "ftag": "fptag", "fiseg": "fcs", "fioff": "fip", "foseg": "fds", "fooff": "fdp",
}  # fmt: skip
_SEGMENTS: Final = ("cs", "ss", "ds", "es", "fs", "gs")


def _x86(general: Iterable[str], pc: str, bits: int, vectors: int) -> Description:
    core = (
        *_Names(general, bits, "int64" if bits == 64 else "int").fields(),
        Field(pc, bits, "code_ptr"),
        Field("eflags", 32, "i386_eflags"),
        *_Names(_SEGMENTS, 32).fields(),
        *_Names(_numbered("st", 8), 80, "i387_ext").fields(),
        *_Names((*_X87_CONTROL, "fop"), 32).fields(_X87_CONTROL, "float"),
    )
    core = tuple(one._replace(type="data_ptr") if one.name in {"rsp", "rbp", "esp", "ebp"} else one for one in core)
    sse = (*_Names(_numbered("xmm", vectors), 128, "vec128").fields(), Field("mxcsr", 32, "i386_mxcsr", "", "vector"))
    system = _Names(("cr0", "cr2", "cr3", "cr4"), bits).fields(group="system")
    features = [
        Feature("org.gnu.gdb.i386.core", core, _EFLAGS),
        Feature("org.gnu.gdb.i386.sse", sse, _XMM + _MXCSR),
    ]
    # gdb knows a Linux program by this register alone: the number of the system call that is to be made again, or -1.
    features.append(
        Feature("org.gnu.gdb.i386.linux", (Field("orig_rax" if bits == 64 else "orig_eax", bits, source="-"),))
    )
    if bits == 64:
        features.append(Feature("org.gnu.gdb.i386.segments", _Names(("fs_base", "gs_base"), 64).fields()))
    features.append(Feature("org.trapline.system", system))
    return Description("i386:x86-64" if bits == 64 else "i386", tuple(features))


_CPSR: Final = _flags("cpsr_flags", 32, {"SP": 0, "F": 6, "I": 7, "A": 8, "D": 9, "V": 28, "C": 29, "Z": 30, "N": 31})
_AARCH64_VECTOR: Final = _vector(
    "aarch64v",
    {"d": ("ieee_double", 2), "s": ("ieee_single", 4), "u64": ("uint64", 2), "u32": ("uint32", 4), "b": ("uint8", 16)},
)
_AARCH64: Final = Description(
    "aarch64",
    (
        Feature(
            "org.gnu.gdb.aarch64.core",
            (
                *_Names(_numbered("x", 31), 64).fields({"x29": "fp", "x30": "lr"}),
                Field("sp", 64, "data_ptr"),
                Field("pc", 64, "code_ptr"),
                Field("cpsr", 32, "cpsr_flags", "pstate"),
            ),
            _CPSR,
        ),
        Feature(
            "org.gnu.gdb.aarch64.fpu",
            (
                *(Field(f"v{n}", 128, "aarch64v", f"q{n}") for n in range(32)),
                *_Names(("fpsr", "fpcr"), 32).fields(),
            ),
            _AARCH64_VECTOR,
        ),
        Feature("org.gnu.gdb.aarch64.tls", (Field("tpidr", 64, "data_ptr", "tpidr_el0"),)),
        Feature(
            "org.trapline.system",
            _Names(
                ("ttbr0_el1", "ttbr1_el1", "esr_el1", "far_el1", "vbar_el1", "elr_el1", "cpacr_el1", "tpidr_el1"), 64
            ).fields(group="system"),
        ),
    ),
    reports_before=True,
)
_RISCV_GENERAL: Final = (
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "fp", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7",
    "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
)  # fmt: skip
_RISCV_FLOAT: Final = (
    *_numbered("ft", 8), "fs0", "fs1", *_numbered("fa", 8), *(f"fs{n}" for n in range(2, 12)),
    *(f"ft{n}" for n in range(8, 12)),
)  # fmt: skip
_RISCV: Final = Description(
    "riscv:rv64",
    (
        Feature(
            "org.gnu.gdb.riscv.cpu",
            (
                *(Field(name, 64, "int", f"x{n}") for n, name in enumerate(_RISCV_GENERAL)),
                Field("pc", 64, "code_ptr"),
            ),
        ),
        Feature(
            "org.gnu.gdb.riscv.fpu",
            (
                *(Field(name, 64, "riscv_double", f"f{n}") for n, name in enumerate(_RISCV_FLOAT)),
                *_Names(("fflags", "frm", "fcsr"), 32).fields(group="float"),
            ),
            '<union id="riscv_double"><field name="float" type="ieee_single"/>'
            '<field name="double" type="ieee_double"/></union>',
        ),
        Feature(
            "org.trapline.system",
            _Names(("satp", "sstatus", "stvec", "sepc", "scause", "stval", "sscratch"), 64).fields(group="system"),
        ),
    ),
    reports_before=True,
)
DESCRIPTIONS: Final = {
    "x86_64": _x86(
        ("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", *(f"r{n}" for n in range(8, 16))), "rip", 64, 16
    ),
    "i386": _x86(("eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"), "eip", 32, 8),
    "aarch64": _AARCH64,
    "riscv64": _RISCV,
}


class Registers:
    """The registers of one machine, by gdb's numbers."""

    def __init__(self, isa: str, ids: Mapping[str, int]) -> None:
        self.description = DESCRIPTIONS[isa]
        self._ids = ids

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """All registers."""
        return self.description.fields

    def read(self, number: int, cpu: Any) -> bytes:
        """Return a register of a CPU, or of a Unicorn context, in the order of memory."""
        one = self.fields[number]
        source = self._ids.get(one.source or one.name)
        value = cpu.reg_read(source) if source is not None else -1
        if isinstance(value, tuple):  # the x87: the mantissa, and the exponent with the sign
            value = value[0] | value[1] << 64
        return int(value & (1 << one.bits) - 1).to_bytes(one.bits // 8, "little")

    def write(self, number: int, data: bytes, cpu: Any) -> bool:
        """Set a register; False: it cannot be set."""
        one = self.fields[number]
        source = self._ids.get(one.source or one.name)
        if source is None or one.name in _SEGMENTS or one.group == "system":
            return False
        value = int.from_bytes(data, "little")
        cpu.reg_write(source, (value & (1 << 64) - 1, value >> 64) if one.type == "i387_ext" else value)
        return True
