"""tests/ mirrors the tree: the tests of a folder, or of a module, are in the folder of that name."""

from pathlib import Path

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
