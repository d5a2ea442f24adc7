"""What an exploration of a race has found, for tests."""

from trapline.lab.race.search import Found


def kind_of(found: Found) -> str:
    """Return the kind of the failure; "holds": there is none, and every order was tried."""
    assert found.complete is (found.failure is None)
    return found.failure.kind if found.failure else "holds"
