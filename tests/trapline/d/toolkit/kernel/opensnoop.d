#!/usr/sbin/dtrace -s
#pragma D option quiet
#pragma D option switchrate=10hz
inline int OPT_time = 0; inline int OPT_name = 1; inline string NAME = "ls"; inline int TRACE = 0; inline string FILENAME = "";
dtrace:::BEGIN { OPT_time ? printf("%-14s ", "TIME") : 1; printf("%5s %6s %3s %s\n", "UID", "PID", "FD", "PATH"); self->ok = 0; }
syscall::open*:entry /(OPT_name == 1 && NAME == execname) || OPT_name == 0/ { self->pathp = arg0; self->ok = 1; }
syscall::open*:return /self->ok && errno == 0 && (TRACE == 1 || arg0 == -1)/ { self->start = timestamp; printf("%5d %6d %3d %s\n", uid, pid, (int)arg0, copyinstr(self->pathp)); }
syscall::open*:return /self->ok/ { self->pathp = 0; self->ok = 0; }
