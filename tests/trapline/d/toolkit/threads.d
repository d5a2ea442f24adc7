#!/usr/sbin/dtrace -s
/* threads.d - the kernel's own structures: thread, process, vnode. */
#pragma D option quiet

fbt::sys_read:entry
/curthread->td_proc->p_textvp != NULL/
{
	printf("thread %d of %s (%d), text %p\n", curthread->td_tid, stringof(curthread->td_proc->p_comm),
	    args[0]->td_proc->p_pid, curthread->td_proc->p_textvp);
	printf("fd %d, %d bytes to %p\n", args[1]->fd, args[1]->nbyte, args[1]->buf);
	exit(0);
}
