#pragma D option quiet

/* Numbers by their names, as FreeBSD's libraries have them, and the kernel's types that scripts use. */

this u_char flag;
this caddr_t place;
this struct sockaddr *name;

syscall:::return /errno/ { @failures[probefunc, strerror[errno]] = count(); }
proc:::signal-send { printf("%s to %d\n", signal_string[args[2]], args[1]->pr_pid); }
proc:::exit { @ends[child_signal_string[(int)arg0]] = count(); }
syscall::open:entry { @opens[arg1 & O_ACCMODE, arg1 & O_CREAT ? "new" : "there"] = count(); }
syscall::sendto:entry {
	this->name = (struct sockaddr *)copyin(arg4, sizeof (struct sockaddr));
	@sent[this->name->sa_family == AF_INET ? "inet" : "other", PF_LOCAL] = sum(arg2);
}
io:::start {
	printf("%s %s %s %s\n", bio_cmd_string[args[0]->b_cmd], device_type[args[1]->dev_type],
	    device_if[args[1]->dev_type], bio_flag_string[args[0]->bio_flags & BIO_DONE]);
}
tcp:::send { printf("%s %s\n", tcpflag_string[args[4]->tcp_flags], tcp_state_string[args[3]->tcps_state]); }
tcp:::send { trace(xlate <tcpinfoh_t> (args[4]->tcp_hdr).tcp_window); @requests[prureq_string[PRU_SEND]] = count(); }
sched:::dequeue { @[((struct thread *)args[0])->td_priority, curthread->td_oncpu, curthread->td_ucred->cr_uid] = count(); }
