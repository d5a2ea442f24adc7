#pragma D option quiet
dtrace:::BEGIN { printf("%5s %6s %-12s %1s %6s %s\n", "UID", "PID", "CMD", "D", "BYTES", "FILE"); }
syscall::*read:entry, syscall::*write:entry { self->fd = arg0; self->ok = 1; }
syscall::*read:return, syscall::*write:return /self->ok/ { this->dir = probefunc == "read" ? "R" : "W"; this->f = fds[self->fd].fi_pathname; printf("%5d %6d %-12.12s %1s %6d %s\n", uid, pid, execname, this->dir, (int)arg0, this->f); self->ok = 0; }
