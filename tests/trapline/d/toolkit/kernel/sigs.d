proc:::signal-send { @[execname, stringof(args[1]->pr_fname), args[2]] = count(); } 
proc:::signal-send /args[2] == SIGKILL || arg2 == SIGTERM/ { printf("%s %d\n", args[1]->pr_psargs, args[1]->pr_pid); }
