"""Everything particular to one ISA is in its folder: no other file contains the name of an ISA."""

import ast
from collections.abc import Iterator
from pathlib import Path, PurePath

import pytest

from emu.isa import ISAS

ROOT = Path(__file__).parents[3]
PACKAGES = ("emu", "providers", "trapline")
NAMES = frozenset(ISAS)
# The constants of emu/isa/__init__.py.
CONSTANTS = frozenset(name.upper() for name in NAMES)
# Data about instructions and CPUs of Unicorn, and exhibits, each of which is about one ISA.
DATA = (
    "emu/isa",
    "emu/unicorn_layout",
    "trapline/lab/check/encodings",
    "emu/engine/qemu/targets.py",
    "trapline/lab/museum",
    "trapline/gdb/registers.py",
)
# The registries: file -> the name that lists a provider's ports by ISA.
REGISTRIES = {
    "providers/fbt/port.py": "PORTS",
    "providers/fasttrap/port.py": "PORTS",
    "providers/kinst/port.py": "PORTS",
    "providers/uprobes/port.py": "PORTS",
    "providers/linux_kernel/port.py": "PORTS",
    "emu/guest/linux_kernel/platforms/boards.py": "BOARDS",
    "trapline/consumer/program/preprocess.py": "_MACHINES",
}
# What depends on the host's CPU, which has names of the same kind.
OF_THE_HOST = {"emu/engine/qemu/inlined_count.py": "POSSIBLE"}


# Machines for Linux kernels, a file for each ISA, as providers have ports.
PLATFORMS = PurePath("emu/guest/linux_kernel/platforms")


# The table of what FreeBSD's decoder of x86 does not know: the ports of both x86 ISAs share it.
SHARED_BY_PORTS = frozenset({"providers/dis_tables.py"})


def files() -> list[str]:
    found = (path.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return sorted(str(path) for path in found if not any(path.is_relative_to(folder) for folder in DATA))


def is_port(file: str) -> bool:
    """Whether a file is a provider's port to one ISA: providers/<provider>/<isa>.py, <isa>_....py, or x86."""
    path = PurePath(file)
    names = (*NAMES, "x86")
    return (path.parts[0] == "providers" or path.parent == PLATFORMS) and any(
        path.stem == name or path.stem.startswith(name + "_") for name in names
    )


def assigned(tree: ast.Module, name: str) -> Iterator[ast.AST]:
    """All nodes of the value that a name is given at the top of a file."""
    for node in tree.body:
        targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            yield from ast.walk(node)


def is_isa_name(node: ast.AST) -> bool:
    """Whether an expression is `isa.name`, of whatever has an `isa`."""
    if not isinstance(node, ast.Attribute) or node.attr != "name":
        return False
    owner = node.value
    return (isinstance(owner, ast.Name) and owner.id == "isa") or (
        isinstance(owner, ast.Attribute) and owner.attr in {"isa", "_isa"}
    )


def compares_name(node: ast.Compare) -> bool:
    return any(map(is_isa_name, (node.left, *node.comparators)))


def asks_registry(node: ast.Compare) -> bool:
    """Whether a comparison is `isa.name in PORTS`: the registry says what there is."""
    registry = node.comparators[0]
    name = registry.attr if isinstance(registry, ast.Attribute) else getattr(registry, "id", "")
    return isinstance(node.ops[0], (ast.In, ast.NotIn)) and name == "PORTS"


def offences(source: str, registry: str | None = None) -> list[str]:
    tree = ast.parse(source)
    allowed = set(assigned(tree, registry)) if registry else set()
    found = []
    for node in ast.walk(tree):
        if node in allowed:
            continue
        if isinstance(node, ast.Constant) and node.value in NAMES:
            found.append(f"{node.lineno}: the string {node.value!r}")
        elif isinstance(node, ast.Compare) and not asks_registry(node) and compares_name(node):
            found.append(f"{node.lineno}: isa.name is compared")
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("emu.isa"):
            one = set(node.module.split(".")) & {*NAMES, "x86"}
            constants = {alias.name for alias in node.names} & CONSTANTS
            found += [f"{node.lineno}: {name} is imported" for name in sorted(one | constants)]
    return found


@pytest.mark.parametrize("file", files())
def test_a_file_outside_the_isas_folders_names_no_isa(file):
    if not is_port(file) and file not in SHARED_BY_PORTS:
        assert offences((ROOT / file).read_text(), (REGISTRIES | OF_THE_HOST).get(file)) == []


@pytest.mark.parametrize(
    "source",
    [
        'masks = {"riscv64": 1}',
        'if isa.name == "aarch64": pass',
        "if self.kernel.isa.name in X86: pass",
        "from emu.isa import X86_64",
        "from emu.isa.i386.traps import LOCK",
        "from emu.isa.x86.unicorn import INVALID_OPCODE",
        'PORTS = {"x86_64": 1}',
    ],
)
def test_an_offence_is_found(source):
    assert offences(source)


def test_a_registry_may_list_isas_and_nothing_else_in_its_file_may():
    assert offences('PORTS: Final = {"x86_64": 1}', "PORTS") == []
    assert offences("if isa.name not in kinst.PORTS: pass") == []
    assert offences('PORTS = {"x86_64": 1}\nOTHERS = {"x86_64": 1}', "PORTS") == ["2: the string 'x86_64'"]


@pytest.mark.parametrize(("file", "registry"), REGISTRIES.items())
def test_a_registry_is_there(file, registry):
    assert any(assigned(ast.parse((ROOT / file).read_text()), registry))
