"""The results of cpuid: the same on every host, with only the features of the emulated CPU.

The numbers are those of the CPU that Unicorn models (QEMU 5, a Haswell as far as its translator
goes: target/i386/cpu.c), without what programs and kernels find not to work here:

* sysenter, which is #UD (`emu.isa.x86.emulated`);
* a hypervisor, whose leaves would be empty;
* monitor, thermal and turbo states;
* the state of AVX in XSAVE's area: there is no AVX.

Source: Intel SDM volume 2, CPUID.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Answer(NamedTuple):
    """The four registers after cpuid."""

    eax: int
    ebx: int
    ecx: int
    edx: int


_HIGHEST, _HIGHEST_EXTENDED = 0xD, 0x8000_0008
_EXTENDED: Final = 0x8000_0000
_FAMILY: Final = 0x306C4
# Leaf 1, edx: fpu de pse tsc msr pae mce cx8 apic mtrr pge mca cmov pat pse36 clflush mmx fxsr sse sse2.
FEATURES: Final = 0x078B_F3FD
# Leaf 1, ecx: sse3 pclmulqdq ssse3 cx16 sse4.1 sse4.2 movbe popcnt aes xsave osxsave rdrand.
_MORE_FEATURES: Final = 0x4ED8_2203
# One of them says whether the system has switched xsave on, as CR4 does.
_OSXSAVE: Final = 1 << 27
_CR4_OSXSAVE: Final = 1 << 18
# Leaf 7, ebx: fsgsbase bmi1 smep bmi2 erms.
_LEAF_7: Final = 0x389
# Leaf 0x8000_0001: lahf lzcnt; nx rdtscp, and of the 64-bit mode syscall and lm.
_LAHF_LZCNT: Final = 0x21
_NX_RDTSCP: Final = 0x0810_0000
_SYSCALL_LM: Final = 0x2000_0800
# x87 and SSE: bits of XCR0, and the size of XSAVE's area for them.
STATES, AREA = 0x3, 0x240


def _text(text: str) -> tuple[Answer, ...]:
    """Return the leaves that hold a text of 48 bytes."""
    data = text.encode().ljust(48, b"\0")
    words = [int.from_bytes(data[at : at + 4], "little") for at in range(0, 48, 4)]
    return tuple(Answer(*words[at : at + 4]) for at in range(0, 12, 4))


_NOTHING: Final = Answer(0, 0, 0, 0)
_VENDOR: Final = (0x756E_6547, 0x6C65_746E, 0x4965_6E69)
# By leaf, and by the subleaf in ecx where that counts.
_LEAVES: Final = {
    0x0: Answer(_HIGHEST, *_VENDOR),
    0x1: Answer(_FAMILY, 0x0000_0800, _MORE_FEATURES, FEATURES),
    0x2: Answer(0x0000_0001, 0, 0, 0x002C_307D),
    0x7: Answer(0, _LEAF_7, 0, 0),
    0x8000_0000: Answer(_HIGHEST_EXTENDED, *_VENDOR),
    0x8000_0001: Answer(_FAMILY, 0, _LAHF_LZCNT, _NX_RDTSCP),
    **{0x8000_0002 + index: answer for index, answer in enumerate(_text("Intel Core Processor (Haswell)"))},
    0x8000_0005: Answer(0x01FF_01FF, 0x01FF_01FF, 0x4002_0140, 0x4002_0140),
    0x8000_0006: Answer(0, 0x4200_4200, 0x0200_8140, 0),
    0x8000_0008: Answer(0x0000_3028, 0, 0, 0),
}
_SUBLEAVES: Final = {
    # Caches: data and instructions of level 1, level 2.
    0x4: (
        Answer(0x0000_0121, 0x01C0_003F, 0x0000_003F, 0x1),
        Answer(0x0000_0122, 0x01C0_003F, 0x0000_003F, 0x1),
        Answer(0x0000_0143, 0x03C0_003F, 0x0000_0FFF, 0x1),
    ),
    0x7: (_LEAVES[0x7],),
    # XSAVE, and that xsaveopt is there.
    0xD: (Answer(STATES, AREA, AREA, 0), Answer(0x1, 0, 0, 0)),
}


def answer(leaf: int, subleaf: int, cr4: int, *, long_mode: bool) -> Answer:
    """Return what cpuid answers, also where it depends on CR4 and on the mode.

    A leaf that does not exist has the answer of the highest one, as on Intel's CPUs.
    """
    highest = _HIGHEST_EXTENDED if leaf & _EXTENDED else _HIGHEST
    if leaf > highest:
        leaf = _HIGHEST
    if leaf in _SUBLEAVES:
        answers = _SUBLEAVES[leaf]
        return answers[subleaf] if subleaf < len(answers) else _NOTHING
    found = _LEAVES.get(leaf, _NOTHING)
    if leaf == 1 and not cr4 & _CR4_OSXSAVE:
        found = found._replace(ecx=found.ecx & ~_OSXSAVE)
    if leaf == 0x8000_0001 and long_mode:
        found = found._replace(edx=found.edx | _SYSCALL_LM)
    return found
