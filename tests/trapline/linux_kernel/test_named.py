"""proc, sched, io and vminfo of a real Linux kernel, and what their arguments are shown as.

These tests need kernels: `make kernels` fetches them.
"""

from tests.trapline.linux_kernel.test_traced import every_kernel, traced


@every_kernel
def test_processes_begin_execute_are_signalled_and_end(isa):
    program = """
    proc:::create { printf("%d makes %d\\n", pid, args[0]->pr_pid); }
    proc:::exec { printf("%d takes %s\\n", pid, stringof(args[0])); }
    proc:::exec-success { printf("%d of %d is %s\\n", pid, curpsinfo->pr_ppid, curpsinfo->pr_psargs); }
    proc:::exec-failure { printf("%d fails %d\\n", pid, args[0]); }
    proc:::signal-send { printf("%d sends %d to %d\\n", pid, args[2], args[1]->pr_pid); }
    proc:::signal-handle { printf("%d has %d\\n", pid, args[0]); }
    proc:::start, proc:::lwp-exit { printf("%d %s\\n", pid, probename); }
    proc:::exit { printf("%d ends %d\\n", pid, args[0]); }
    """
    shown = traced(
        isa, program, "cat /etc/motd; echo 1 > /tmp/f; chmod +x /tmp/f; /etc/motd; sleep 9 & kill -9 $!; exec /tmp/f"
    )
    lines = shown.splitlines()
    shell = next(int(line.split()[0]) for line in lines if " is sh -c " in line)
    cat = next(int(line.split()[0]) for line in lines if line.endswith("is cat /etc/motd"))
    expected = [
        f"{shell} makes {cat}",
        f"{cat} start",
        f"{cat} of {shell} is cat /etc/motd",
        f"{cat} ends 1",
        f"{cat} sends 17 to {shell}",
    ]
    assert [line for line in lines if line in expected] == expected
    sleeper = next(int(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(f"{shell} sends 9 to "))
    assert any(line.endswith(" fails 13") for line in lines)
    assert {f"{sleeper} ends 2", f"{shell} takes /tmp/f", f"{cat} lwp-exit"} <= set(lines)


@every_kernel
def test_the_scheduler_takes_the_cpu_as_often_as_it_gives_it(isa):
    program = """
    sched:::on-cpu { @["on"] = count(); }
    sched:::off-cpu { @["off"] = count(); @next[args[1]->pr_fname, args[0]->pr_lwpid] = count(); }
    sched:::wakeup { @["wake"] = count(); @woken[args[0]->pr_sname] = count(); }
    sched:::enqueue, sched:::dequeue { @[probename] = count(); @cpu[args[2]->cpu_id] = count(); }
    sched:::tick { @[probename] = count(); }
    END { printf("\\n="); printa(" %s %@d", @); printa(" %s %d %@d", @next); }
    """
    shown = traced(isa, program, "seq 1 300 | sort | tail -n 1").rpartition("\n=")[2].split()
    counts = dict(zip(shown[::2], shown[1::2], strict=False))
    assert abs(int(counts["on"]) - int(counts["off"])) <= 1
    assert int(counts["enqueue"]) >= int(counts["wake"]) > 3
    assert {"sort", "tail"} & set(shown)


@every_kernel
def test_a_page_that_is_written_after_a_fork_is_copied(isa):
    program = 'vminfo:::as_fault, vminfo:::cow_fault /execname == "sh"/ { @[probename] = sum(arg0); }'
    shown = traced(isa, program, "true; (true); (true)").split()
    counts = dict(zip(shown[::2], map(int, shown[1::2]), strict=True))
    assert counts["as_fault"] > counts["cow_fault"] > 3


@every_kernel
def test_processes_and_files_are_shown_as_dtrace_has_them(isa):
    program = """
    syscall::read:entry /execname == "dd"/ {
        printf("%s %s %d %s\\n", fds[arg0].fi_pathname, fds[arg0].fi_fs, fds[arg0].fi_offset, cwd);
    }
    proc:::exit /execname == "dd"/ {
        printf("%d %d %d %s %c %d\\n", curpsinfo->pr_pid == pid, curpsinfo->pr_ppid == ppid, curpsinfo->pr_uid,
            curpsinfo->pr_fname, curlwpsinfo->pr_sname, curlwpsinfo->pr_lwpid == tid);
    }
    """
    shown = traced(isa, program, "cd /etc; dd if=/etc/passwd of=/dev/null bs=16 2>/dev/null; true")
    assert "/etc/passwd rootfs 16 /etc\n" in shown
    assert "1 1 0 dd O 1\n" in shown


@every_kernel
def test_io_has_probes_though_the_machine_has_no_disk(isa):
    shown = traced(isa, "io:::start, io:::done { trace(args[0]->b_bcount + args[1]->dev_major); }", "true")
    assert shown.strip() == ""


@every_kernel
def test_arguments_are_the_same_on_every_engine_and_there_are_five(isa, monkeypatch):
    sums = "".join(f'@["{number}", probeprov, probename] = sum((int64_t)arg{number}); ' for number in range(10))
    program = f'proc:::, sched:::, io:::, vminfo::: {{ {sums} }} END {{ printa("=%s %s %s %@d\\n", @); }}'
    shown = {}
    for engine in ("native", "reference"):
        monkeypatch.setenv("TRAPLINE_ENGINE", engine)
        shown[engine] = traced(isa, program, "echo 1 > /tmp/f; sync; sort /tmp/f; kill -0 $$; sleep 0.01; sync", "-Z")
    assert shown["native"] == shown["reference"]
    rows = [line[1:].split() for line in shown["native"].splitlines() if line[:1] == "="]
    assert {"exec", "off-cpu", "as_fault"} <= {row[2] for row in rows}
    assert {int(row[3]) for row in rows if row[0] in "56789"} == {0}
