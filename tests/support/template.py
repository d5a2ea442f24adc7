"""A process that has loaded all of Trapline, of which each command of the tests is a fork.

Loading is most of a short command, and the tests run some hundreds.  A fork has the template's
modules and their caches (decoded instructions, the grammar's tables), and no state of any earlier
command.

    python -m tests.support.template      reads a request a line, JSON, and answers each with a
    line: the exit status,
                                          null if it took too long
"""

import atexit
import contextlib
import io
import json
import os
import runpy
import signal
import sys
import traceback
from importlib import import_module

from emu.isa import ISAS
from trapline.cli import COMMANDS, main


def warm_up():
    """Load every command, and run one on each ISA."""
    for command in COMMANDS:
        import_module(f"trapline.commands.{command}")
    nothing = io.StringIO()
    with contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):
        for isa in ISAS:
            with contextlib.suppress(SystemExit):
                main(["dtrace", "--isa", isa, "-n", "BEGIN { exit(0); }"])


def _become(request):
    """Be the process of a command, to its end."""
    os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    for number, (name, flags) in enumerate(zip(request["files"], (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY), strict=True)):
        os.dup2(os.open(name, flags), number)
    sys.argv = ["trapline", *request["arguments"]]
    status = 1
    try:
        runpy.run_module("trapline", run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as error:
        if isinstance(error.code, str):
            sys.stderr.write(f"{error.code}\n")
        else:
            status = error.code or 0
    except BaseException:  # noqa: BLE001  as the interpreter does
        traceback.print_exc()
    atexit._run_exitfuncs()
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _wait(child, seconds):
    """Return a child's exit status as subprocess gives it; None: it took too long, and is gone."""
    late = []
    signal.signal(signal.SIGALRM, lambda *_: (late.append(1), os.killpg(child, signal.SIGKILL)))
    signal.alarm(seconds)
    _, status = os.waitpid(child, 0)
    signal.alarm(0)
    return None if late else os.waitstatus_to_exitcode(status)


def serve():
    """Answer requests until there are no more."""
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(nothing, number)
    warm_up()
    for line in requests:
        request = json.loads(line)
        child = os.fork()
        if not child:
            requests.close()
            _become(request)
        answers.write(json.dumps(_wait(child, request["limit"])) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve()
