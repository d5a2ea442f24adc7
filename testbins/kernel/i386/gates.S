/*
 * The gates: calls the emulator answers. It watches these addresses, does the work when one is reached, and the return
 * instruction goes back to the caller.
 */
#include "asmacros.h"

#define GATE(name) ENTRY(name) ret; END(name)

GATE(gate_ready)
GATE(gate_console_write)
GATE(gate_console_read)
GATE(gate_poweroff)
GATE(gate_panic)
GATE(gate_nanouptime)
GATE(gate_clock_start)
GATE(gate_icache_sync)
GATE(dtrace_invop)
GATE(dtrace_probe)
GATE(dtrace_pid_probe)
GATE(dtrace_fasttrap_fork)
GATE(dtrace_fasttrap_exec)
GATE(dtrace_fasttrap_exit)
GATE(dtrace_fasttrap_sendsig)
GATE(dtrace_fasttrap_thread_exit)
GATE(dtrace_helper_slurp)
GATE(dtrace_helper_destroygen)
GATE(gate_call_return)
GATE(dtrace_dev_open)
GATE(dtrace_dev_close)
GATE(dtrace_dev_ioctl)
GATE(dtrace_kld_load)
GATE(dtrace_kld_unload_try)
