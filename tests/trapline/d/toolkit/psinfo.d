#!/usr/sbin/dtrace -s
/* psinfo.d - what ps(1) would say of the reader. */
#pragma D option quiet

fbt::sys_read:entry
{
	printf("%d %d %s %c on cpu %d\n", curpsinfo->pr_pid, curpsinfo->pr_uid, curpsinfo->pr_psargs,
	    curlwpsinfo->pr_sname, curcpu->cpu_id);
	exit(0);
}
