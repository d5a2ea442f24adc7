"""aggrate, switchrate and statusrate: when the consumer looks, in the guest's time."""

from tests.support.command import run_trapline

SUMS = """
int i;
tick-100ms { i++; @ = sum(i); }
tick-100ms { printf("%d", i); printa(":%@d ", @); }
tick-100ms /i == 6/ { exit(0); }
"""


def test_printa_shows_the_sum_of_its_own_firing():
    run = run_trapline(["dtrace", "-q", "-x", "aggrate=1ms", "-x", "switchrate=50ms", "-n", SUMS])
    assert run.stdout == "1:1 2:3 3:6 4:10 5:15 6:21 \n"


def test_end_waits_for_the_next_look_at_the_status():
    program = "BEGIN { s = timestamp; } tick-1s { exit(0); } END { trace((timestamp - s) / 1000000000); }"
    assert run_trapline(["dtrace", "-qn", program]).stdout == "1\n"
    assert run_trapline(["dtrace", "-q", "-x", "statusrate=5s", "-n", program]).stdout == "5\n"


def test_a_chill_may_put_the_clock_far_ahead():
    run = run_trapline(["dtrace", "-wqn", "fbt:::entry { chill(1000000); }", "-c", "cat /etc/motd"])
    assert "illegal operation in action #1" in run.stderr
    assert "Traceback" not in run.stderr
