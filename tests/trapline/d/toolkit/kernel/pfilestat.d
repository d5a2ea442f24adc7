#pragma D option quiet
#pragma D option defaultargs
inline int TOP = 50;
dtrace:::BEGIN { SORT = $$1; }
syscall::read:entry { self->fd = arg0; self->t = timestamp; }
syscall::read:return /self->t/ { @bytes[fds[self->fd].fi_pathname, fds[self->fd].fi_fs] = sum(arg0 > 0 ? arg0 : 0); self->t = 0;}
tick-5s { normalize(@bytes, 1024); trunc(@bytes, TOP); printa("%s %s %@d\n", @bytes); clear(@bytes); }
