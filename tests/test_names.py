"""One word means one thing: the classes whose names were once used several times."""

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Public classes of providers and programs that are looked for by name.
UNIQUE = "Machine Record Site Fidelity Layout Rule Decision Analysis Plan Displaced Patcher Engine".split()


def test_a_class_that_is_known_by_its_name_is_there_once():
    found = Counter()
    for folder in ("emu", "providers", "trapline"):
        for path in (ROOT / folder).rglob("*.py"):
            found.update(re.findall(r"^class (\w+)", path.read_text("utf-8"), re.MULTILINE))
    assert {name: found[name] for name in UNIQUE if found[name] > 1} == {}
