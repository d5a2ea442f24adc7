"""The layout of the tree: tests/ mirrors it, and no two modules need each other."""

from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
# Whole systems: real programs of Debian, and commands on Linux kernels.
OF_SYSTEMS = {"tests/emu/guest/linux/programs", "tests/trapline/linux_kernel"}


def test_every_folder_of_tests_is_that_of_a_folder_or_module_of_the_tree():
    folders = {path.parent for package in ("emu", "providers", "trapline")
               for path in (ROOT / "tests" / package).rglob("test_*.py")}  # fmt: skip
    assert folders
    missing = set()
    for folder in folders:
        source = ROOT / folder.relative_to(ROOT / "tests")
        if not source.is_dir() and not source.with_suffix(".py").is_file():
            missing.add(str(folder.relative_to(ROOT)))
    assert missing == OF_SYSTEMS


def test_no_module_imports_itself_by_way_of_others():
    graph = grimp.build_graph("emu", "providers", "trapline", cache_dir=None)
    left = {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}
    assert len(left) > 1000
    # A module goes once all that it imports has gone; what stays is in a circle, or above one.
    while gone := {module for module, imported in left.items() if not imported}:
        left = {module: imported - gone for module, imported in left.items() if module not in gone}
    assert left == {}
