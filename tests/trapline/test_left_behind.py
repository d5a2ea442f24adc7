"""Whatever ends a command ends the processes that work for it, and one line says so."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# A shell starts background commands with SIGINT ignored.
START = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from trapline.start import main; main()"
)
CHECK = ("check", "testbins:kernel", "--isa", "riscv64", "--no-run", "--results", "results", "--states", "20000")
COMMANDS = {
    "check": CHECK,
    "check --jobs 2": (*CHECK, "--jobs", "2"),
    "bench": ("bench",),
    "lab": ("lab", "check", "9"),
    "bench --host": ("bench", "--host"),
    "object build": ("object", "build", "--glue", "fasttrap", "--sources", "sources", "--cc", "./cc"),
}
# Signal -> exit status, and the beginning of the line on standard error; a killed process says nothing.
ENDS = {
    signal.SIGINT: (130, "trapline: interrupted"),
    signal.SIGTERM: (143, "trapline: terminated"),
    signal.SIGHUP: (129, "trapline: hung up"),
    signal.SIGKILL: (-9, ""),
}
LIMIT = 60.0


def descendants(ancestor: int) -> set[int]:
    """Return the processes that a process has started, directly or not."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state != "Z":
            parents[int(entry.name)] = int(parent)
    found, new = set(), {ancestor}
    while new:
        new = {child for child, parent in parents.items() if parent in new}
        found |= new
    return found


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(condition) -> bool:
    limit = time.monotonic() + LIMIT
    while not condition() and time.monotonic() < limit:
        time.sleep(0.02)
    return condition()


def prepare(command: str, folder: Path) -> int:
    """Make what a command needs; return how many processes work for it."""
    if command == "lab":
        start = [sys.executable, "-m", "trapline", "lab", "start", "9"]
        subprocess.run(start, cwd=folder, check=True, capture_output=True)
        work = folder / "lab-9"
        (code,) = (path for path in work.glob("*.py"))
        code.write_text("import time\ntime.sleep(60)\n")
        return 1
    if command == "object build":
        source = folder / "sources" / "intel" / "dtrace" / "fasttrap_isa.c"
        source.parent.mkdir(parents=True)
        source.touch()
        compiler = folder / "cc"
        compiler.write_text("#!/bin/sh\nexec sleep 60\n")
        compiler.chmod(0o755)
        return 1
    if command == "bench --host":
        if platform.machine() not in {"x86_64", "aarch64"}:
            pytest.skip("bench --host is of x86-64 and AArch64")
        return 1
    return 3  # the tracker, the server that workers are forked from, a worker


@pytest.mark.parametrize("number", ENDS, ids=lambda number: number.name)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_process_is_left(command, number, tmp_path):
    count = prepare(command, tmp_path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    running = subprocess.Popen(
        [sys.executable, "-c", START, *COMMANDS[command]], cwd=tmp_path, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        assert until(lambda: len(descendants(running.pid)) >= count or running.poll() is not None)
        workers = descendants(running.pid)
        assert len(workers) >= count, running.communicate()
        running.send_signal(number)
        _, said = running.communicate(timeout=LIMIT)
    finally:
        running.kill()
    status, line = ENDS[number]
    assert running.returncode == status, said
    assert said.startswith(line)
    assert said.count("\n") == bool(line), said
    assert until(lambda: not any(map(alive, workers))), workers


def test_a_signal_while_workers_are_ended_waits_until_all_are(tmp_path):
    code = (
        "import os, signal, time; from trapline.support import workers\n"
        "from multiprocessing.process import BaseProcess\n"
        "if __name__ == '__main__':\n"
        "    crew = workers.Workers(2, 'time'); work = [crew.submit(time.sleep, 60) for _ in range(2)]\n"
        "    end = BaseProcess.terminate\n"
        "    BaseProcess.terminate = lambda process: (os.kill(os.getpid(), signal.SIGINT), end(process))\n"
        "    workers.abandon(crew, work)\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        [sys.executable, script], env=environment, timeout=LIMIT, capture_output=True, text=True, check=False
    )
    assert ended.stderr.strip().endswith("KeyboardInterrupt")
