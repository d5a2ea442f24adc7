# Small programs of everyday: what a user writes without thinking of sections

$ -x errtags -n 'BEGIN { printf("%s", pid ? NULL : "a"); exit(0) }'
|
!dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): invalid address (0x0) in action #1

$ -x errtags -n 'BEGIN { x = "a"; y = x == NULL ? "null" : "not"; trace(y); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN   not                              
|

$ -x errtags -n 'BEGIN { self->s = strstr("abc", "z"); trace(self->s == NULL); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         1
|

$ -x errtags -n 'BEGIN { s = strtok("a b", " "); trace(s != NULL && s != ""); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         1
|

$ -q -n 'BEGIN { printf("%d %d %d", '\''a'\'' == 97, 1 <= 2 <= 3, -5 % 3); exit(0) }'
|1 1 -2

$ -q -n 'fbt::malloc:entry { this->s = arg0 > 100 ? "big" : "small"; @[this->s] = avg(arg0); } END { printa("%-10s %@d\n", @) }'
|small      55
|big        1024
|

$ -q -n 'struct pt { int x; int y; }; struct pt p[int]; BEGIN { p[1].x = 5; p[1].y = 6; p[2].x = 7; printf("%d %d %d\n", p[1].x, p[1].y, p[2].x); exit(0) }'
|5 6 7
|

$ -q -n 'BEGIN { a = 1; a = a++ + ++a; printf("%d\n", a); b = (1, 2, 3); printf("%d\n", b); exit(0) }'
|4
|3
|

$ -q -n 'BEGIN { printf("%d\n", sizeof(int) * 3 - offsetof(struct vnode, v_name)); exit(0) }'
|6
|

$ -q -n 'BEGIN { i = 3; i -= 1 ? 2 : 1; printf("%d %s\n", i, i ? "yes" : "no"); exit(0) }'
|1 yes
|

$ -q -n 'BEGIN { this->p = &`proc0; this->q = this->p + 1; printf("%d %d\n", this->q - this->p, this->q > this->p); exit(0) }'
|1 1
|

$ -q -n 'BEGIN { printf("%s %s\n", stringof(`proc0.p_comm), (string)`proc0.p_comm); printf("%c%c\n", `proc0.p_comm[0], *(`proc0.p_comm + 1)); exit(0) }'
|kernel kernel
|ke
|

$ -q -n 'uint64_t t[int]; BEGIN { t[1] = timestamp; t[2] = t[1] + 5; printf("%d\n", t[2] - t[1]); t[1] = 0; printf("%d\n", t[1]); exit(0); }'
|5
|0
|

$ -q -n 'BEGIN { printf("%d\n", 5 > 3 ? 10 : 20 + 5); printf("%d\n", !1 + 2); printf("%d\n", ~0 & 0xff); exit(0); }'
|10
|2
|255
|

$ -q -n 'string s; BEGIN { s = "abc"; s = strjoin(s, "def"); printf("%s %d\n", s, strlen(s)); exit(0) }'
|abcdef 6
|

$ -q -n 'BEGIN { x = (int)arg0 != 0; printf("%d\n", x); exit(0); }'
|0
|

$ -q -n 'fbt::sys_read:entry { @num[execname] = count(); @sz[execname] = quantize(args[1]->nbyte); } END { printa("%s %@d %@d\n", @num, @sz); }'
|sh 1 
|           value  ------------- Distribution ------------- count    
|             256 |                                         0        
|             512 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        
|            1024 |                                         0        
|
|cat 3 
|           value  ------------- Distribution ------------- count    
|             256 |                                         0        
|             512 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 3        
|            1024 |                                         0        
|
|

$ -q -n 'BEGIN { printf("%10s|%-10s|%5d|%-5d|%05d|%x|%#x|%o|%c|%%\n", "r", "l", 1, 2, 3, 255, 255, 8, 65); exit(0); }'
|         r|l         |    1|2    |00003|ff|0xff|10|A|%
|

$ -q -n 'ERROR { exit(3); } BEGIN { trace(*(char *)NULL); }'
|
!dtrace: error on enabled probe ID 2 (ID 1: dtrace:::BEGIN): invalid address (0x0) in action #1 at DIF offset 16
= 3

$ -q -n 'BEGIN { trace(execname); trace(" "); trace(pid); trace("\n"); exit(0); }'
|sh 42
|

$ -q -n 'BEGIN /pid == 42 && execname == "sh"/ { printf("ok\n"); } BEGIN { exit(0) }'
|ok
|

$ -q -n 'BEGIN { @x = count(); printa("%@d\n", @x); @x = count(); printa("%@d\n", @x); exit(0); }'
|2
|2
|

$ -q -n 'BEGIN { printf("%s\n", substr("hello", 1, 3)); printf("%s\n", lltostr(12345)); printf("%d\n", strtoll("0777", 8)); exit(0); }'
|ell
|12345
|511
|

$ -q -n 'fbt::sys_read:entry { self->depth[probefunc] = 1; self->ts[probefunc, self->depth[probefunc]] = timestamp; } fbt::sys_read:return /self->ts[probefunc, self->depth[probefunc]]/ { printf("%d\n", timestamp - self->ts[probefunc, self->depth[probefunc]]); self->ts[probefunc, self->depth[probefunc]] = 0; self->depth[probefunc]--; }'
|60000
|520000
|80000
|40000
|

$ -q -n 'BEGIN { x[pid, "a"]++; x[pid, "a"]++; printf("%d\n", x[pid, "a"]); exit(0) }'
|2
|

$ -x errtags -n 'typedef struct { int a; int b; } t; BEGIN { this->x = (t *)alloca(sizeof(t)); this->x->a = 3; this->x->b = this->x->a * 2; trace(this->x->b); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         6
|

$ -x errtags -n 'BEGIN { this->a = (int *)alloca(16); this->a[3] = 7; this->i = 3; trace(this->a[this->i]); bcopy(&`ticks, this->a, 4); trace(*this->a); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         7     1234
|

$ -x errtags -n 'BEGIN { trace(curthread->td_proc->p_comm); trace(&curthread->td_proc->p_comm); trace(((struct proc *)curthread->td_proc)->p_pid); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN   kernel                                 -2146434556       42
|
