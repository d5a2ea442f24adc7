"""Long work goes on where it was stopped: no unit is done twice, and no finished one is lost."""

import signal
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from benchmarks import provenance, release
from benchmarks.ongoing import Kept, TimeIsUpError, bounded, complete

UNITS = {str(number): (number,) for number in range(9)}


class Worker:
    """Squares numbers; stops as ^C does when it has the chosen one for the first time."""

    def __init__(self, stop):
        self._stop = stop
        self.done = []

    def __call__(self, number):
        if number == self._stop:
            self._stop = None
            raise KeyboardInterrupt
        self.done.append(number)
        return number**2


@pytest.mark.parametrize("stop", [0, 4, 8])
def test_a_stopped_check_does_only_what_is_left(stop, tmp_path):
    worker, path = Worker(stop), tmp_path / "folder" / "kept.jsonl"
    make = partial(ThreadPoolExecutor, 1)
    with pytest.raises(KeyboardInterrupt):
        complete("squares", UNITS, worker, Kept(path), make)
    kept = set(Kept(path).results)
    assert kept <= set(UNITS)
    assert len(kept) >= stop - 1
    before = len(worker.done)
    assert complete("squares", UNITS, worker, Kept(path), make) == [number**2 for number in range(9)]
    assert sorted(worker.done[before:]) == sorted(int(key) for key in set(UNITS) - kept)
    assert complete("squares", UNITS, None, Kept(path), make) == [number**2 for number in range(9)]


def test_a_line_that_was_cut_off_is_done_again(tmp_path):
    path = tmp_path / "kept.jsonl"
    kept = Kept(path)
    kept.add("1", 1)
    kept.add("2", 4)
    path.write_text(path.read_text()[:-4])
    assert Kept(path).results == {"1": 1}
    Kept(path).add("3", 9)
    assert Kept(path).results == {"1": 1, "3": 9}


def test_a_result_that_says_the_same_keeps_its_date(tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    provenance.save(path, {"cases": (1, 2)}, "7")
    first = path.read_text()
    assert '"seeds": "7"' in first
    monkeypatch.setattr(provenance, "provenance", lambda _seeds: {"date": "later"})
    provenance.save(path, {"cases": (1, 2)}, "7")
    assert path.read_text() == first
    provenance.save(path, {"cases": (1, 3)}, "7")
    assert '"later"' in path.read_text()


def test_a_part_stops_when_its_time_is_over():
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(TimeIsUpError), bounded(1_000):
        signal.raise_signal(signal.SIGALRM)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_all_parts_have_their_turn_and_what_is_wrong_or_unfinished_is_said(monkeypatch, capsys):
    given = []

    def unfinished(words):
        given.append(words)
        raise TimeIsUpError

    def wrong(words):
        given.append(words)
        return 1

    monkeypatch.setattr(release, "PARTS", {"check": unfinished, "sweep": wrong, "race": lambda _words: 0})
    monkeypatch.setattr(release.prose, "write", lambda: None)
    assert release.main(["--minutes", "1000", "--jobs", "3", "--dask", "tcp://host:1"]) == 1
    assert given == 2 * [["--jobs", "3", "--dask", "tcp://host:1"]]
    printed = capsys.readouterr().out
    assert "wrong: sweep; not finished: check" in printed
    assert "states of their instructions" in printed
    assert release.main(["--part", "race"]) == 0
    assert "not finished: nothing" in capsys.readouterr().out
