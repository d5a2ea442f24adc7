"""The known differences between the tables and capstone.

Each has a mask and a value, capstone's names, and the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from trapline.lab.check.encodings.decoder import Facts

# Capstone's name of an encoding that it does not decode.
NOTHING: Final = ""


@dataclass(frozen=True, slots=True)
class Exemption:
    """Encodings with word & `mask` == `value` whose row is correct although capstone disagrees."""

    providers: tuple[str, ...]
    rows: tuple[str, ...]
    mask: int
    value: int
    names: frozenset[str]
    """Capstone's names for them; none: whatever it calls them."""
    differs: Facts
    """The facts on which the table and capstone differ."""
    why: str
    lengths: bool = False
    """Whether the lengths differ, too."""

    def names_it(self, name: str) -> bool:
        """Return whether it is about what capstone gives a name."""
        return not self.names or name in self.names


_NOTHING: Final = frozenset({NOTHING})
_NONE: Final = Facts.NONE
_RELATIVE: Final = Facts.RELATIVE
_CONTROL: Final = Facts.CONTROL
_BOTH: Final = Facts.RELATIVE | Facts.CONTROL
_PID: Final = ("pid", "pid:freebsd")
_UNDEFINED: Final = "capstone decodes nothing here: the CPU that is emulated faults, or does the same at any address"
_PRIVILEGED: Final = "privileged: in user mode the copy faults, as the original does"
_AARCH64: Final = (
    Exemption(
        ("fbt",), ("stp xt1, xt2, [sp, #imm]!", "ldp xt1, xt2, [sp], #imm"), 0xFE800000, 0xA8800000, _NOTHING, _NONE,
        "unpredictable: the base is among the registers stored or loaded, or one is loaded twice; "
        "the stub's mask does not look at registers",
    ),
    Exemption(
        _PID, ("PRFM_PC_REL",), 0xFF000000, 0xD8000000, frozenset({"prfm"}), _RELATIVE,
        "a prefetch may be skipped: the program cannot observe it",
    ),
    Exemption(
        ("pid:freebsd",), ("COMMON",), 0xFFFFFE1F, 0xD61F0200, frozenset({"br"}), _CONTROL,
        "XNU's mask for br has a bit too many: x16 to x31 are not recognized",
    ),
    Exemption(
        ("pid:freebsd",), ("COMMON",), 0xFFFFFE1F, 0xD63F0200, frozenset({"blr"}), _CONTROL,
        "XNU's mask for blr has a bit too many: x16 to x31 are not recognized",
    ),
    Exemption(
        (*_PID, "uprobe"), ("COMMON", "anything else"), 0x7E000000, 0x74000000, _NOTHING, _NONE,
        "FEAT_CMPBR, compare and branch: newer than capstone 5 and than the CPU that is emulated, which faults",
    ),
    Exemption(
        (*_PID, "uprobe"), ("COMMON", "anything else"), 0xFFC0001F, 0x5500001F, _NOTHING, _NONE,
        "FEAT_PAuth_LR, retaasppc and retabsppc: newer than capstone 5 and than the CPU that is emulated, which faults",
    ),
    Exemption(
        (*_PID, "uprobe"), ("COMMON", "anything else"), 0xFFFFFBE0, 0xD65F0BE0, _NOTHING, _NONE,
        "FEAT_PAuth_LR, retaasppcr and retabsppcr: newer than capstone 5 and than the CPU that is emulated, "
        "which faults",
    ),
    Exemption(
        (*_PID, "uprobe"), ("COMMON", "anything else"), 0xFFC0001F, 0xF380001F, _NOTHING, _NONE,
        "FEAT_PAuth_LR, autiasppc and autibsppc: newer than capstone 5 and than the CPU that is emulated, which faults",
    ),
    Exemption(
        (*_PID, "uprobe"), ("COMMON", "anything else"), 0xFFFFDBFF, 0xDAC183FE, _NOTHING, _NONE,
        "FEAT_PAuth_LR, paciasppc and the like, which sign with the pc: newer than capstone 5 and than the CPU that is "
        "emulated, which faults",
    ),
    Exemption(_PID, ("COMMON",), 0xFFFFFFFF, 0xD69F03E0, frozenset({"eret"}), _CONTROL, _PRIVILEGED),
    Exemption(_PID, ("COMMON",), 0xFFFFFBFF, 0xD69F0BFF, frozenset({"eretaa", "eretab"}), _CONTROL, _PRIVILEGED),
    Exemption(
        (*_PID, "uprobe"), ("COMMON", "anything else"), 0xFFFFFFFF, 0xD6BF03E0, frozenset({"drps"}), _CONTROL,
        _PRIVILEGED,
    ),
    Exemption((*_PID, "uprobe"), ("COMMON", "anything else"), 0, 0, _NOTHING, _NONE, _UNDEFINED),
)  # fmt: skip
_RISCV64: Final = (
    Exemption(
        ("pid", "uprobe"), ("COMMON", "anything else"), 0x1F, 0x1F, _NOTHING, _NONE,
        "reserved for instructions of 48 bits and more, none of which exist: it faults, whatever its length",
    ),
    Exemption(("pid",), ("COMMON",), 0xFFFFFFFF, 0x10200073, frozenset({"sret"}), _CONTROL, _PRIVILEGED),
    Exemption(("pid",), ("COMMON",), 0xFFFFFFFF, 0x30200073, frozenset({"mret"}), _CONTROL, _PRIVILEGED),
    Exemption(("pid",), ("COMMON",), 0xFFFFFFFF, 0x00200073, frozenset({"uret"}), _CONTROL, _PRIVILEGED),
    Exemption(("pid", "uprobe"), ("COMMON", "anything else"), 0x3, 0x3, _NOTHING, _NONE, _UNDEFINED),
    Exemption(
        ("pid", "uprobe"), ("C_COMMON", "anything else, compressed", "c.jr, reserved"), 0, 0, _NOTHING, _NONE,
        "reserved, or a hint: the copy faults, or does nothing, as the original does",
    ),
)  # fmt: skip
_SAME: Final = "it jumps to an absolute address, or to one that it reads: it does the same at any address"


_CONDITIONAL: Final = frozenset(
    {"jo", "jno", "jb", "jae", "je", "jne", "jbe", "ja", "js", "jns", "jp", "jnp", "jl", "jge", "jle", "jg"}
)
_BRANCHES: Final = ("JCC", "LOOP", "JCXZ", "CALL", "JMP", "RET", "RET16", "NOP", "JMP, indirect", "CALL, indirect")


def _x86(common: tuple[str, ...], away: frozenset[str], counted: frozenset[str], privileged: frozenset[str],
         pc: str) -> tuple[Exemption, ...]:  # fmt: skip
    """Return the exemptions of a mode.

    They name rows of fasttrap's copies, and capstone's instructions there.
    """
    return (
        Exemption(_PID, common, 0, 0, away, _CONTROL, _SAME),
        Exemption(
            ("pid:freebsd",),
            common,
            0,
            0,
            frozenset({"call", "lcall"}),
            _CONTROL,
            "FreeBSD runs far calls out of line: the address after the copy is pushed",
        ),
        Exemption(
            ("pid:freebsd",),
            ("COMMON",),
            0,
            0,
            frozenset({"xbegin"}),
            _BOTH,
            "FreeBSD runs it out of line: the address of the abort handler is relative to the copy",
        ),
        Exemption((*_PID, "uprobe"), ("COMMON", "stepped"), 0, 0, privileged, _CONTROL, _PRIVILEGED),
        Exemption(
            (*_PID, "uprobe"),
            (*common, "stepped", "NOP"),
            0,
            0,
            _NOTHING,
            _NONE,
            "capstone does not know it; `make lengths` judges lengths by decoders that do",
        ),
        Exemption(
            ("uprobe",),
            ("stepped",),
            0,
            0,
            counted,
            _BOTH,
            f"relative to the copy, and after the step {pc} is moved by as much as the copy was",
        ),
        Exemption(
            ("pid:freebsd",),
            common[:1],
            0,
            0,
            frozenset({"extrq", "insertq"}),
            _NONE,
            "dis_tables takes them for vmread, without their immediates",
            lengths=True,
        ),
        Exemption(
            ("pid:freebsd",),
            _BRANCHES,
            0,
            0,
            _NOTHING,
            _NONE,
            "FreeBSD does not look at LOCK, which the CPU refuses",
        ),
        *(
            Exemption(
                ("pid:freebsd",),
                common[:1],
                0xFF,
                0x8F,
                frozenset(),
                differs,
                "dis_tables takes XOP for a pop",
                lengths=True,
            )
            for differs in ((_NONE, _RELATIVE) if pc == "rip" else (_NONE,))
        ),
    )


_LOOPS: Final = frozenset({"loop", "loope", "loopne", "jecxz"})
_FAR: Final = frozenset({"retf", "iret", "iretd", "jmp", "ljmp"})
_SYSTEM: Final = frozenset({"sysret", "sysexit"})
_LONG_AWAY: Final = _FAR | {"retfq", "iretq"}
_LONG_COUNTED: Final = _LOOPS | {"jrcxz"}
_LONG_PRIVILEGED: Final = _SYSTEM | {"sysretq", "sysexitq"}


_X86_64: Final = (
    *_x86(
        common=("COMMON", "COMMON, by a register"),
        away=_LONG_AWAY,
        counted=_LONG_COUNTED,
        privileged=_LONG_PRIVILEGED,
        pc="rip",
    ),
    Exemption(
        ("pid:freebsd",),
        ("JCC",),
        0,
        0,
        _CONDITIONAL,
        _NONE,
        "dis_tables takes 66 for a distance of 16 bits in 64-bit mode, too",
        lengths=True,
    ),
    Exemption(
        ("pid:freebsd",),
        ("COMMON, by a register",),
        0,
        0,
        frozenset({"mov"}),
        _RELATIVE,
        "FreeBSD takes a move of a control or debug register for relative to rip: it is privileged, and faults",
    ),
)
_I386: Final = _x86(("COMMON",), away=_FAR, counted=_LOOPS | {"jcxz"}, privileged=_SYSTEM, pc="eip")
# By ISA; of those that match an encoding, and on x86 also the difference, the first one is used.
EXEMPTIONS: Final[Mapping[str, tuple[Exemption, ...]]] = {
    "aarch64": _AARCH64,
    "riscv64": _RISCV64,
    "x86_64": _X86_64,
    "i386": _I386,
}
