#pragma D option quiet
inline int OPT_time = 0; inline int OPT_cmd = 1; inline int INTERVAL = 1; inline int COUNTER = 1;
dtrace:::BEGIN { counts = COUNTER; secs = INTERVAL; cpustart[cpu] = 0; }
sched:::on-cpu { cpustart[cpu] = timestamp; }
sched:::off-cpu /cpustart[cpu]/ { this->elapsed = timestamp - cpustart[cpu]; OPT_cmd ? @T[execname] = quantize(this->elapsed) : 1; !OPT_cmd ? @T[pid] = quantize(1) : 1; cpustart[cpu] = 0; }
profile:::tick-1sec { secs--; }
profile:::tick-1sec /secs == 0/ { OPT_time ? printf("\n%Y,\n", walltimestamp) : 1; printa("%s %@d\n", @T); secs = INTERVAL; counts--; }
profile:::tick-1sec /counts == 0/ { exit(0); }
