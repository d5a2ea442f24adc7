#pragma D option quiet
#pragma D option switchrate=10hz
dtrace:::BEGIN { printf("%5s %6s %6s %s\n", "UID", "PID", "PPID", "ARGS"); }
syscall::exec*:return /errno == 0/ { printf("%5d %6d %6d %s\n", uid, pid, curpsinfo->pr_ppid, stringof(curpsinfo->pr_psargs)); }
proc:::exec-success { printf("%Y %s %d %d\n", walltimestamp, curpsinfo->pr_fname, curpsinfo->pr_projid, curpsinfo->pr_zoneid); }
