"""Every run of the tests is the same: Hypothesis draws its examples from a fixed seed.

`HYPOTHESIS_PROFILE=new-examples` draws others, more of them, from the seed of
`--hypothesis-seed` (`make test-new-examples`): the same seed finds the same failures again.
"""

import gc
import os

from hypothesis import settings

from trapline.support import process

settings.register_profile("same-every-time", derandomize=True, deadline=None)
# Without the database of earlier failures a run depends on its seed alone.
settings.register_profile("new-examples", deadline=None, database=None, max_examples=1000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same-every-time"))
# A command keeps its objects for ever, since its process ends with it.  The process of the tests runs hundreds: the
# guests that they left filled the table of the count (`emu.engine.qemu.inlined_count.low_memory`), and each new guest
# searched for garbage a quarter of a second long.
process.relieve_collector = lambda: None


def pytest_collection_finish() -> None:
    """Take the modules and the tests' items out of the search for garbage, as the command does.

    Searching eleven thousand items again and again took a fifth of the time of a run.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


def pytest_sessionfinish() -> None:
    """Search for garbage once: pytest does it several times at its end, among all that lives."""
    gc.collect()
    gc.freeze()
