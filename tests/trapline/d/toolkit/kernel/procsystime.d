#pragma D option quiet
inline int OPT_elapsed = 1; inline int OPT_filter = 0; inline int PID = 0; inline string NAME = "x";
syscall:::entry /(! OPT_filter) || (PID == pid) || (execname == NAME)/ { self->ok = 1; }
syscall:::entry /self->ok/ { OPT_elapsed ? @Counts[probefunc] = count() : 1; self->start = timestamp; self->vstart = vtimestamp; }
syscall:::return /self->start/ { this->elapsed = timestamp - self->start; OPT_elapsed ? @Elapsed[probefunc] = sum(this->elapsed) : 1; self->start = 0; self->vstart = 0; }
dtrace:::END { OPT_elapsed ? printf("\nElapsed Times,\n\n%16s %18s\n", "SYSCALL", "TIME (ns)") : 1; OPT_elapsed ? printa("%16s %@18d\n", @Elapsed) : 1; OPT_elapsed ? printf("%16s %18s\n", "", "") : 1; }
