"""Names and places of tracepoints."""

from providers.linux_kernel.registrations import tracepoint_name


def test_pointers_to_tracepoints_are_no_tracepoints():
    found = {name: tracepoint_name(f"__tracepoint_{name}") for name in ("sched_switch", "ptr_sched_switch")}
    assert found == {"sched_switch": "sched_switch", "ptr_sched_switch": ""}
    assert tracepoint_name("event_sched_switch") == ""
