"""Each SDT probe of the kernel guest, fired by what it is about, with arguments that say what was done."""

from __future__ import annotations

from functools import cache

import pytest

from emu.isa import ISAS
from providers.sdt import SdtProvider
from trapline.consumer.tracer import Tracer
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest

WORKLOAD = """
sh -c 'dd if=/dev/md0 of=/tmpf bs=512 count=4 & dd if=/dev/md0 of=/dev/null bs=512 count=4; wait'
dd if=/tmpf of=/dev/md0 bs=512 count=2
sysctl debug.dtracetest.sdttest=1
su 100 sysctl debug.dtracetest.sdttest=1
mkdir /d; mv /tmpf /d/b; ls /d; rm /d/b; rmdir /d; cat /d; ln /etc/motd /m2; grep -c x /m2; rm /m2
ls -l /etc
nosuch
sigtest
pipetest 8
spin -y 3
spin 1200 & spin 400 & wait
sleep 0.6; dd if=/dev/urandom of=/dev/null bs=64 count=2
sleep 0.01; echod 7 & sleep 0.01; echo x | nc 7; nc 9; echod -u 7 & sleep 0.01; echo y | nc -u 7; wait
kldload hello; crash text
"""
# Probes of what this kernel lacks: other kinds of locks, CPUs that spin, priorities, sigwait, swap, lost packets.
WITHOUT_SITES = {
    "lockstat": {
        *("adaptive-spin", "spin-spin", "sx-downgrade", "sx-spin", "sx-upgrade", "thread-spin"),
        *(f"rw-{what}" for what in ("acquire", "block", "downgrade", "release", "spin", "upgrade")),
        *(f"lockmgr-{what}" for what in ("acquire", "block", "disown", "downgrade", "release", "upgrade")),
    },
    "mib": {
        *("ipIfStatsInDiscards", "tcpHalfOpenDrop", "tcpInDataDupBytes", "tcpInDataDupSegs", "tcpInDataUnorderBytes"),
        *("tcpInDataUnorderSegs", "tcpInDupAck", "tcpOutFastRetrans", "tcpRetransBytes", "tcpRetransSegs"),
        *("tcpTimRetrans", "tcpTimRetransDrop", "udpOutErrors"),
    },
    "proc": {"signal-clear"},
    "sched": {"change-pri", "lend-pri"},
    "sysinfo": {
        *("bawrite", "bread", "bwrite", "intrblk", "lread", "lwrite", "modunload", "msg", "mutex_adenters", "nthreads"),
        *("phread", "phwrite", "procovf", "rw_rdfails", "rw_wrfails", "sema", "xcalls"),
    },
    "vminfo": {
        *("anonfree", "anonpgin", "anonpgout", "dfree", "execfree", "execpgout", "fsfree", "fspgin", "fspgout"),
        *("hat_fault", "kernel_asflt", "maj_fault", "pgin", "pgout", "pgpgin", "pgpgout", "pgrec", "pgrrun", "rev"),
        *("scan", "softlock"),
    },
}
PROBES = {
    "callout_execute": {("kernel", "none", name) for name in ("callout-start", "callout-end")},
    "fsinfo": {
        ("kernel", "none", operation)
        for operation in (
            *("lookup", "create", "mkdir", "remove", "rmdir", "link", "rename", "read", "write", "readdir"),
            *("getattr", "setsize", "getpage", "inactive"),
        )
    },
    "ip": {("kernel", "none", name) for name in ("receive", "send")},
    "io": {("kernel", "none", name) for name in ("start", "done", "wait-start", "wait-done")},
    "lockstat": {
        ("kernel", "none", name)
        for name in (
            "adaptive-acquire",
            "adaptive-block",
            "adaptive-release",
            "spin-acquire",
            "spin-release",
            "sx-acquire",
            "sx-block",
            "sx-release",
        )
    },
    "mib": {
        ("kernel", "none", name)
        for name in (
            *("ipIfStatsHCInDelivers", "ipIfStatsHCInOctets", "ipIfStatsHCInReceives", "ipIfStatsHCOutOctets"),
            *("ipIfStatsHCOutTransmits", "ipIfStatsInCksumErrs", "ipIfStatsInUnknownProtos", "ipIfStatsOutDiscards"),
            *("tcpActiveOpens", "tcpAttemptFails", "tcpEstabResets", "tcpHCInSegs", "tcpHCOutSegs", "tcpInAckBytes"),
            *("tcpInAckSegs", "tcpInClosed", "tcpInDataInorderBytes", "tcpInDataInorderSegs", "tcpInErrs"),
            *("tcpListenDrop", "tcpOutAck", "tcpOutControl", "tcpOutDataBytes", "tcpOutDataSegs", "tcpOutRsts"),
            *("tcpPassiveOpens", "udpHCInDatagrams", "udpHCOutDatagrams", "udpInCksumErrs", "udpInErrors"),
            *("udpInOverflows", "udpNoPorts"),
        )
    },
    "priv": {("kernel", "priv_check", name) for name in ("priv-ok", "priv-err")},
    "proc": {
        ("kernel", "none", name)
        for name in (
            "create",
            "exec",
            "exec-failure",
            "exec-success",
            "exit",
            "lwp-exit",
            "signal-send",
            "signal-discard",
        )
    },
    "random": {("fortuna", "event_processor", "debug")},
    "sched": {
        ("kernel", "none", name)
        for name in (
            "dequeue",
            "enqueue",
            "load-change",
            "off-cpu",
            "on-cpu",
            "preempt",
            "remain-cpu",
            "sleep",
            "surrender",
            "tick",
            "wakeup",
        )
    },
    "sysinfo": {
        ("kernel", "none", name)
        for name in (
            *("idlethread", "inv_swtch", "modload", "namei", "pswitch", "readch", "sysexec", "sysfork", "sysread"),
            *("sysvfork", "syswrite", "trap", "writech"),
        )
    },
    "tcp": {
        ("kernel", "none", name)
        for name in (
            *("accept-established", "accept-refused", "connect-established", "connect-refused", "connect-request"),
            *("receive", "send", "state-change"),
        )
    },
    "test": {("kernel", "none", "sdttest")},
    "udp": {("kernel", "none", name) for name in ("receive", "send")},
    "vfs": {
        *(("namecache", what, "done") for what in ("enter", "enter_negative", "purge", "purge_negative")),
        *(("namecache", what, "done") for what in ("zap", "zap_negative")),
        *(("namecache", "lookup", name) for name in ("hit", "hit-negative", "miss")),
        *(("namei", "lookup", name) for name in ("entry", "return")),
        *(("kernel", "stat", name) for name in ("mode", "reg")),
        *(
            ("vop", f"vop_{operation}", name)
            for operation in (
                *("lookup", "create", "mkdir", "remove", "rmdir", "link", "rename", "read", "write", "readdir"),
                *("getattr", "setsize", "getpage", "inactive"),
            )
            for name in ("entry", "return")
        ),
    },
    "vminfo": {
        ("kernel", "none", name) for name in ("as_fault", "cow_fault", "execpgin", "pgfrec", "prot_fault", "zfod")
    },
}
# No thread of the guest sleeps with a mutex, and none is interrupted: nobody ever waits for one. Nothing on the
# loopback damages a packet, and no program here fills a queue, sends to nobody, or goes away from a connection.
NEVER = {
    ("lockstat", "kernel", "none", "adaptive-block"),
    *(
        ("mib", "kernel", "none", name)
        for name in (
            *("ipIfStatsInCksumErrs", "ipIfStatsInUnknownProtos", "ipIfStatsOutDiscards", "tcpEstabResets"),
            *("tcpInClosed", "tcpInErrs", "tcpListenDrop", "udpInCksumErrs", "udpInErrors", "udpInOverflows"),
            "udpNoPorts",
        )
    ),
}
PROGRAM = """
proc:::exec, proc:::exec-success { trace(stringof(arg0)); trace(curpsinfo->pr_psargs); }
proc:::exec-failure, proc:::exit, priv::: { trace(arg0); trace(execname); }
proc:::create { trace(xlate <psinfo_t *> (args[0])->pr_pid); trace(xlate <psinfo_t *> (args[1])->pr_pid); trace(pid);
    trace(arg2); }
proc:::lwp-exit { trace(pid); }
proc:::signal-send, proc:::signal-discard { trace(xlate <psinfo_t *> (args[1])->pr_pid); trace(args[2]); }
io:::start, io:::done { trace(execname); trace(args[0]->bio_cmd); trace(args[0]->bio_offset);
    trace(args[0]->bio_bcount); trace(args[0]->bio_resid); trace(xlate <devinfo_t *> (args[1])->dev_statname);
    trace(xlate <bufinfo_t *> (args[0])->b_blkno); }
io:::wait-start, io:::wait-done { trace(arg0); trace(args[1]->unit_number); }
test:::sdttest { trace(args[0]); trace(args[1]); trace(args[2]); trace(args[3]); trace(args[4]); trace(args[5]); }
random::: { trace(args[0]); trace(arg1 == (uintptr_t)&`fortuna_state.fs_pool); }
vfs:namecache:lookup:hit, vfs:namecache:enter:done, vfs:namecache:zap:done
    { trace(stringof(args[1])); trace(args[0]->v_type); trace(arg2 != 0); }
vfs:namecache:lookup:hit-negative, vfs:namecache:lookup:miss, vfs:namecache:enter_negative:done,
vfs:namecache:zap_negative:done { trace(stringof(args[1])); }
vfs:namei:lookup:entry { trace(stringof(args[1])); self->path = stringof(args[1]); }
vfs:namei:lookup:return { trace(self->path); trace(args[0]); trace(arg1 != 0); }
vfs::stat: { trace(copyinstr(arg0)); trace(arg1); }
sched:::off-cpu { trace(arg0 == (uintptr_t)curthread); trace(xlate <psinfo_t *> (args[1])->pr_fname); }
sched:::tick, sched:::surrender { trace(arg0 == (uintptr_t)curthread); trace(execname); }
callout_execute::: { trace(arg0); trace(func((uintptr_t)args[0]->c_func)); }
lockstat:::sx-block { trace(args[1]); trace(args[2]); trace(args[3]); trace(args[4]); trace(execname); }
"""
COUNTED = """
sched:::, lockstat:::, vfs:::, sysinfo:::, vminfo:::, ip:::, tcp:::, udp:::, mib:::, fsinfo:::
{ @[probeprov, probemod, probefunc, probename] = count(); }
"""


class Run:
    """The workload with every probe on."""

    def __init__(self, isa):
        machine = boot(kernel_guest(KernelOptions(isa=ISAS[isa], command=WORKLOAD)))
        self.screen = bytearray()
        self.probes = {}
        for probe in machine.dtrace.table:
            if isinstance(probe.provider, SdtProvider):
                self.probes.setdefault(probe.provider.name, set()).add((probe.module, probe.function, probe.name))
        libraries = ("common", "kernel", isa)
        options = {"aggsize": "4m", "bufsize": "32m"}
        with Tracer(machine.guest, machine.dtrace, options, foreign=machine.names, libraries=libraries) as tracer:
            tracer.enable(PROGRAM)
            tracer.enable(COUNTED)
            self.events = {}
            self.order = []
            for event in tracer.run():
                names = (event.probe.provider, event.probe.module, event.probe.function, event.probe.name)
                self.events.setdefault(names, []).append(event.values)
                self.order.append((names, event.values))
            self.counts = {element.keys: element.value for element in tracer.aggregations()}
            self.faults, self.drops = tracer.faults, tracer.drops

    def of(self, provider, name, function="none", module="kernel"):
        return self.events.get((provider, module, function, name), [])


@cache
def run(isa):
    return Run(isa)


each_isa = pytest.mark.parametrize("isa", ISAS)


@each_isa
def test_the_probes_have_the_names_of_freebsds_tables(isa):
    probes = {provider: set(names) for provider, names in PROBES.items()}
    for provider, names in WITHOUT_SITES.items():
        probes[provider] |= {("kernel", "none", name) for name in names}
    assert run(isa).probes == probes


@each_isa
def test_every_probe_is_fired_by_what_it_is_about(isa):
    found = run(isa)
    fired = {*found.counts, *found.events}
    every = {(provider, *names) for provider, probes in PROBES.items() for names in probes}
    assert every - fired == NEVER
    assert found.faults == found.drops == []


@each_isa
def test_a_program_is_executed_with_its_path_and_arguments(isa):
    found = run(isa)
    paths = [values[0] for values in found.of("proc", "exec")]
    assert "/bin/dd" in paths or "dd" in paths
    succeeded = [values[1] for values in found.of("proc", "exec-success")]
    for line in ("spin -y 3", "sysctl debug.dtracetest.sdttest=1", "dd if=/tmpf of=/dev/md0 bs=512 count=2", "nosuch"):
        assert succeeded.count(line) == (2 if line.startswith("sysctl") else 0 if line == "nosuch" else 1)
    failures = set(found.of("proc", "exec-failure"))
    assert {error for error, _ in failures} == {2}  # ENOENT


@each_isa
def test_processes_are_made_by_whom_and_end_as_they_do(isa):
    found = run(isa)
    made = found.of("proc", "create")
    ended = [pid for (pid,) in found.of("proc", "lwp-exit")]
    assert len(ended) == len(set(ended)) == len(found.of("proc", "exit"))
    assert set(ended) <= {child for child, *_ in made}
    # The kernel's own are children of process 0, whoever asked for them.
    assert all(parent in {maker, 0} for _, parent, maker, _ in made)
    assert {reason for reason, _ in found.of("proc", "exit")} == {1, 2}  # sigtest and pipetest kill processes
    for probe in ("signal-send", "signal-discard"):
        assert (20,) in {values[1:] for values in found.of("proc", probe)}  # SIGCHLD
    sent = found.of("proc", "signal-send")
    assert set(found.of("proc", "signal-discard")) <= set(sent)
    assert len(sent) > len(found.of("proc", "signal-discard"))


@each_isa
def test_transfers_are_what_dd_does(isa):
    found = run(isa)
    started, done = found.of("io", "start"), found.of("io", "done")
    assert [values[1:5] for values in started if values[1] == 2] == [(2, 0, 512, 512), (2, 512, 512, 512)]
    reads = sorted(values[2] for values in started if values[1] == 1)
    assert reads == sorted([0, 512, 1024, 1536] * 2)
    assert {values[5] for values in started} == {"md0"}
    assert all(values[6] * 512 == values[2] for values in started)
    assert {values[0] for values in started} == {"dd"}
    assert {values[0] for values in done} == {"md0"}
    assert [(one[1:4], one[4]) for one in done] == [(one[1:4], 0) for one in started]
    waits = found.of("io", "wait-start")
    assert waits == found.of("io", "wait-done") == [(0, 0)] * len(started)


@each_isa
def test_six_arguments_arrive(isa):
    assert run(isa).of("test", "sdttest") == [(1, 2, 3, 4, 5, 6)]


@each_isa
def test_privileges_are_asked_for_by_number(isa):
    found = run(isa)
    assert found.of("priv", "priv-ok", "priv_check") == [
        (241, "sysctl"),
        (50, "su"),
        (8, "init"),
    ]
    assert found.of("priv", "priv-err", "priv_check") == [(241, "sysctl")]


@each_isa
def test_the_generator_gets_a_new_key_when_its_first_pool_is_full(isa):
    counts = [count for count, pools in run(isa).of("random", "debug", "event_processor", "fortuna") if pools]
    assert counts
    assert counts == list(range(counts[0], counts[0] + len(counts)))


@each_isa
def test_the_name_cache_tells_what_it_holds(isa):
    found = run(isa)

    def names(name, what):
        return [values[0] for values in found.of("vfs", name, what, "namecache")]

    assert "dd" in names("miss", "lookup")
    assert "dd" in names("hit", "lookup")
    assert "dd" in names("done", "enter")
    assert set(names("done", "zap")) <= set(names("done", "enter")) | {"etc", "bin", "dev", "motd"}
    assert {"nosuch", "d"} & set(names("done", "enter_negative"))
    looked_up = [values for values in found.of("vfs", "return", "lookup", "namei") if values[0] == "/d"]
    assert ("/d", 0, 1) in looked_up
    assert ("/d", 2, 0) in looked_up
    stat = dict(found.of("vfs", "mode", "stat"))
    regular = [path for path, _ in found.of("vfs", "reg", "stat")]
    assert {path for path, mode in stat.items() if mode & 0o170000 == 0o100000} == set(regular)
    assert "/etc/rc" in regular


@each_isa
def test_the_scheduler_says_who_is_next(isa):
    found = run(isa)
    assert {same for same, _ in found.of("sched", "off-cpu")} == {0}
    assert {"spin", "dd", "md0", "idle"} <= {name for _, name in found.of("sched", "off-cpu")}
    assert {same for same, _ in found.of("sched", "tick")} == {1}
    assert found.of("sched", "surrender") == [(1, "spin")] * 3
    counts = {key[3]: value for key, value in found.counts.items() if key[0] == "sched"}
    assert counts["load-change"] == counts["enqueue"] + counts["dequeue"]
    assert abs(counts["enqueue"] - counts["dequeue"]) <= 1
    assert counts["preempt"] >= counts["remain-cpu"] > 0


@each_isa
def test_callouts_start_and_end_in_turn(isa):
    found = run(isa)
    order = [(names[3], values[0]) for names, values in found.order if names[0] == "callout_execute"]
    assert [name for name, _ in order] == ["callout-start", "callout-end"] * (len(order) // 2)
    assert all(begun[1] == ended[1] for begun, ended in zip(order[::2], order[1::2], strict=True))
    functions = {values[1] for values in found.of("callout_execute", "callout-start")}
    assert "kernel`sleepq_timeout" in functions


@each_isa
def test_a_wait_for_a_lock_is_reported_with_who_held_it(isa):
    found = run(isa)
    (wait,) = found.of("lockstat", "sx-block")
    time, kind, by_writer, readers, name = wait
    assert time > 1000
    assert (kind, by_writer, readers, name) == (0, 1, 0, "dd")
    counts = {key[3]: value for key, value in found.counts.items() if key[0] == "lockstat"}
    for lock in ("adaptive", "spin", "sx"):
        assert counts[f"{lock}-acquire"] - counts[f"{lock}-release"] in {0, 1}
