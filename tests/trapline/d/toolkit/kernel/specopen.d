syscall::open:entry { self->spec = speculation(); speculate(self->spec); printf("%s", stringof(copyinstr(arg0))); }
fbt::: /self->spec/ { speculate(self->spec); }
syscall::open:return /self->spec/ { speculate(self->spec); trace(errno); }
syscall::open:return /self->spec && errno != 0/ { commit(self->spec); self->spec = 0; }
syscall::open:return /self->spec && errno == 0/ { discard(self->spec); self->spec = 0; }
