# The environment of the commands of -c: what the guest's init has, what dtrace(1) adds, what the options say.

NAME the environment of a command
RUN trapline dtrace -qn 'END { printf("done\n"); }' -c printenv
EXPECT
|PATH=/bin:/sbin:/usr/bin
|LD_NOLAZYLOAD=1
|done
|

NAME setenv and unsetenv change the environment
RUN trapline dtrace -x setenv=COLOUR='blue and "green"' -x unsetenv=LD_NOLAZYLOAD -qn 'proc:::exec-success { printf("%s\n", execname); }' -c 'printenv; printenv COLOUR'
EXPECT
|PATH=/bin:/sbin:/usr/bin
|COLOUR=blue and "green"
|blue and "green"
|sh
|printenv
|printenv
|
