/* Where the emulator comes in: it takes over at each of these addresses, then lets the return happen. */
.macro gate name
	.globl	\name
	.type	\name, @function
	.balign	4
\name:
	ret
	.size	\name, . - \name
.endm

	.text
	gate	gate_ready
	gate	gate_console_write
	gate	gate_console_read
	gate	gate_poweroff
	gate	gate_panic
	gate	gate_nanouptime
	gate	gate_clock_start
	gate	gate_icache_sync
	gate	dtrace_invop
	gate	dtrace_probe
	gate	dtrace_pid_probe
	gate	dtrace_fasttrap_fork
	gate	dtrace_fasttrap_exec
	gate	dtrace_fasttrap_exit
	gate	dtrace_fasttrap_sendsig
	gate	dtrace_fasttrap_thread_exit
	gate	dtrace_helper_slurp
	gate	dtrace_helper_destroygen
	gate	gate_call_return
	gate	dtrace_dev_open
	gate	dtrace_dev_close
	gate	dtrace_dev_ioctl
	gate	dtrace_kld_load
	gate	dtrace_kld_unload_try
