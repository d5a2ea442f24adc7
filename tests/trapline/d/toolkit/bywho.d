#!/usr/sbin/dtrace -s
/* bywho.d - names of users, by an inline and a chain of conditions. */
#pragma D option quiet

inline string user[int id] = id == 0 ? "root" : id == 100 ? "cat-user" : "nobody";

fbt::sys_read:entry
{
	@[user[uid], basename("/bin/sh")] = count();
}

END { printa("%-10s %-6s %@d\n", @); }
