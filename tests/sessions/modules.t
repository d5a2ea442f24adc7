# Kernel modules, and kinst.

NAME a module's functions are probed once it is there
RUN trapline dtrace -Z -qn 'fbt:echo:echo_count:entry { printf("%s told %d bytes\n", execname, arg0); }' -c 'kldload echo; echo one two > /dev/echo'
EXPECT
|{{...}}
|echo told 8 bytes
|

NAME a module with an enabled probe stays
RUN trapline dtrace --console -Z -qn 'fbt:hello::entry { trace(probefunc); }' -c 'kldload hello; kldunload hello'
EXPECT
|{{...}}
|hello, kernel
|kldunload: can't unload file: Device busy
|

NAME a module that is told to go says good-bye
RUN trapline dtrace --console -qn 'BEGIN { }' -c 'kldload hello; kldunload hello'
EXPECT
|{{...}}
|hello, kernel
|bye, after 1
|

NAME kinst sees an instruction as often as syscall the call
# FreeBSD/i386 has no kinst.
ISAS x86_64 aarch64 riscv64
RUN trapline dtrace -qn 'kinst::sys_read:0 { k++; } syscall::read:entry { s++; } END { printf("%s", k == s && k > 7 ? "as often" : "differently"); }' -c 'dd if=/dev/zero of=/dev/null count=7'
EXPECT
|{{...}}
|as often
