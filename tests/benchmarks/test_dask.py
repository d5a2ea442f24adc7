"""The long checks on a real Dask cluster of two worker processes.

Each part hands its units to the executor of `ongoing.workers`: `check` by the crew of
`trapline check`, the others by `ongoing.complete`.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.ongoing import Kept, complete
from trapline.commands.check import dask_workers
from trapline.lab.check.runner.check import Spec, check
from trapline.lab.check.site.subject import Subject
from trapline.support.targets import find_file


@pytest.fixture(scope="module")
def address():
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'trapline[dask]'")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:
        yield cluster.scheduler_address


def test_a_check_on_a_cluster_finds_what_one_process_finds(address):
    spec = Spec((Subject(find_file("testbins:tiny"), "x86_64", every_instruction=True),), states=3)
    with dask_workers(address) as make:
        there = check(spec, executor=make, jobs=2)
    with ThreadPoolExecutor(1) as one:
        here = check(spec, executor=one)
    assert there.same
    assert there.sites > 5
    assert (there.outcomes, there.states, there.refusals) == (here.outcomes, here.states, here.refusals)


def test_units_are_done_by_the_workers_of_a_cluster_and_kept(address, tmp_path):
    kept = Kept(tmp_path / "kept.jsonl")
    with dask_workers(address) as make:
        pids = complete("pids", {str(n): () for n in range(8)}, os.getpid, kept, make, 2)
    assert os.getpid() not in pids
    assert Kept(tmp_path / "kept.jsonl").results == {str(n): pid for n, pid in enumerate(pids)}
