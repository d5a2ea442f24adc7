# The walk-through that FBT is best known by: sys_getpid disassembled before, while it is probed, and after.

NAME what fires without a breakpoint
RUN trapline step -n 'syscall::getpid:entry' -c 'getpid 1'
EXPECT
|{{...}}
|   The kernel calls dtrace_probe() with the number of the probe and its arguments. It is a gate: the emulator does it.
|   dtrace_probe({{\d+}}, ...) fires syscall:freebsd:getpid:entry in getpid, pid {{\d+}}.
|{{...}}

NAME what does not fire at all
RUN trapline step -n 'syscall::mkdir:entry' -c 'getpid 1'
STDERR
|Error: syscall::mkdir:entry: did not fire before the guest ended
EXIT 1

NAME sys_getpid with a LOCK in front
ISAS i386
RUN trapline step -n 'fbt::sys_getpid:entry' -c getpid
EXPECT
|fbt:kernel:sys_getpid:entry on i386, host trap path
|
|1. patched bytes
|   The CPU fetches lock mov ebp, esp: the provider has written it over the only byte of push ebp, which is now the displaced instruction.
|   at       kernel`sys_getpid
|   address  0xc{{[0-9a-f]+}}
|   before   55  push ebp
|   after    f0  lock mov ebp, esp
|   before
|     <+0>    55{{ +}}push ebp
|     <+1>    89 e5{{ +}}mov ebp, esp
|{{...}}
|   enabled
|     <+0>    f0{{ +}}lock mov ebp, esp   (3 bytes)
|{{...}}
|2. exception
|   #UD, vector 6: LOCK before an instruction that cannot be locked is a fault, so the saved eip points at it. The emulator takes this exception itself: the kernel's vector does not run.
|{{...}}
|   instruction  push ebp
|   plan         [esp-4] = ebp; esp = esp-4; eip = eip+1
|{{...}}
|8. resume
|   The program continues as if the displaced instruction had run in its place.
|   pc    0xc{{[0-9a-f]+}}
|   in    kernel`sys_getpid+0x1
|   next  mov ebp, esp
|
|9. disabled
|   The program has ended, its probe is disabled, and the bytes are back.
|   after
|     <+0>    55{{ +}}push ebp
|     <+1>    89 e5{{ +}}mov ebp, esp
|{{...}}

NAME the return of sys_getpid is the pop before the ret
ISAS i386
RUN trapline step -n 'fbt::sys_getpid:return' -c getpid
EXPECT
|{{...}}
|   before
|{{...}}
|     <+{{\d+}}>{{ +}}5d{{ +}}pop ebp
|     <+{{\d+}}>{{ +}}c3{{ +}}ret
|   enabled
|{{...}}
|     <+{{\d+}}>{{ +}}f0{{ +}}lock ret   (2 bytes)
|     <+{{\d+}}>{{ +}}c3{{ +}}ret
|
|2. exception
|{{...}}
|   plan         %0 = [esp]; ebp = %0; esp = esp+4; eip = eip+1
|{{...}}
|   after
|{{...}}
|     <+{{\d+}}>{{ +}}5d{{ +}}pop ebp
|     <+{{\d+}}>{{ +}}c3{{ +}}ret

NAME sys_getpid with an int3 for its push
ISAS x86_64
RUN trapline step -n 'fbt::sys_getpid:entry' -c getpid
EXPECT
|{{...}}
|   before
|{{...}}
|     <+{{\d+}}>{{ +}}55{{ +}}push rbp
|{{...}}
|   enabled
|{{...}}
|     <+{{\d+}}>{{ +}}cc{{ +}}int3
|{{...}}
|   plan         [rsp-8] = rbp; rsp = rsp-8; rip = rip+1
|{{...}}
|9. disabled
|   The program has ended, its probe is disabled, and the bytes are back.
|   after
|{{...}}
|     <+{{\d+}}>{{ +}}55{{ +}}push rbp
|{{...}}

NAME sys_getpid with a brk for its stp
ISAS aarch64
RUN trapline step -n 'fbt::sys_getpid:entry' -c getpid
EXPECT
|{{...}}
|   before
|     <+0>    {{.. .. .. a9 +}}stp x29, x30, [sp, #-{{.*}}]!
|{{...}}
|   enabled
|     <+0>    a0 81 20 d4{{ +}}brk #0x40d
|{{...}}
|9. disabled
|   The program has ended, its probe is disabled, and the bytes are back.
|   after
|     <+0>    {{.. .. .. a9 +}}stp x29, x30, [sp, #-{{.*}}]!
|{{...}}

NAME sys_getpid with a c.ebreak for its c.sdsp
ISAS riscv64
RUN trapline step -n 'fbt::sys_getpid:entry' -c getpid
EXPECT
|{{...}}
|   before
|{{...}}
|     <+{{\d+}}>{{ +}}06 ec{{ +}}c.sdsp ra, 0x18(sp)
|{{...}}
|   enabled
|{{...}}
|     <+{{\d+}}>{{ +}}02 90{{ +}}c.ebreak
|{{...}}
|9. disabled
|   The program has ended, its probe is disabled, and the bytes are back.
|   after
|{{...}}
|     <+{{\d+}}>{{ +}}06 ec{{ +}}c.sdsp ra, 0x18(sp)
|{{...}}
