# Programs chapter by chapter: values, types, pointers into scratch memory, branches (every number worked out by hand)

> a.d
|int a[4]; BEGIN { a[0] = 1; a[3] = 4; printf("%d %d %d\n", a[0] + a[3], *(a + 3), sizeof (a)); exit(0); }
$ -x errtags -q -s a.d
|5 4 16
|

> a.d
|int a[2][3]; BEGIN { a[1][2] = 7; printf("%d %d\n", a[1][2], sizeof (a[0])); exit(0); }
$ -x errtags -q -s a.d
|7 12
|

> a.d
|int *p; BEGIN { p = (int *)alloca(16); p[0] = 10; p[1] = 20; *(p + 2) = 30; *p += 5; p[1]++; printf("%d %d %d %d\n", p[0], p[1], p[2], *p++); printf("%d\n", *p); exit(0); }
$ -x errtags -q -s a.d
|15 21 30 15
|21
|

> a.d
|char *s; BEGIN { s = alloca(10); bcopy("hello", s, 6); printf("%s %d\n", stringof(s), strlen(s)); exit(0); }
$ -x errtags -q -s a.d
|hello 5
|

> a.d
|BEGIN { @ = avg(10); @ = avg(20); @x["min"] = min(-5); @x["min"] = min(3); @y = max(7); @z = stddev(5); @z = stddev(15); printa("%@d\n", @); printa(@x); printa(@y); printa(@z); exit(0); }
$ -x errtags -q -s a.d
|15
|
|  min                                                              -5
|
|                7
|
|                5
|

> a.d
|#pragma D option aggsortrev
|#pragma D option aggsortkey
|BEGIN { @[1] = sum(5); @[3] = sum(1); @[2] = sum(3); printa("%d %@d\n", @); exit(0); }
$ -x errtags -q -s a.d
|3 1
|2 3
|1 5
|

> a.d
|BEGIN { trace(offsetof(struct proc, p_comm)); trace(sizeof (struct proc)); trace(sizeof (int *)); trace(sizeof ("abc")); trace(sizeof (execname)); exit(0); }
$ -x errtags -q -s a.d
|416884256

> a.d
|BEGIN { x = 5; x <<= 2; x |= 1; x ^= 3; x %= 7; x &= 0xff; x >>= 0; x *= 10; x /= 3; x -= 1; printf("%d\n", x); y = x > 2 && x < 100 || 0; printf("%d %d %d\n", y, !x, -x); exit(0);}
$ -x errtags -q -s a.d
|2
|0 0 -2
|

> a.d
|BEGIN { printf("%d %d %d\n", "abc" < "abd", "abc" == "abc", "b" >= "a"); printf("%d\n", execname == "sh"); printf("%d\n", execname != NULL); exit(0);}
$ -x errtags -q -s a.d
|1 1 1
|1
|1
|

> a.d
|struct out { int a; string s; }; translator struct out < struct proc *P > { a = P->p_pid; s = stringof(P->p_comm); };
|struct out o; BEGIN { o = xlate <struct out> (&`proc0); printf("%d %s\n", o.a, o.s); print(o); this->t = xlate <struct out *> (&`proc0)->a; printf("%d\n", this->t); print(*xlate <struct out *> (&`proc0)); exit(0); }
$ -x errtags -q -s a.d
|42 kernel
|struct out {
|    int a = 0x2a
|    string s = "kernel"
|}42
|struct out {
|    int a = 0x2a
|    string s = "kernel"
|}

> a.d
|struct c { union { int a; char b[4]; }; struct { int x; } in; int (*g)(); int *h[2]; }; struct c v; BEGIN { v.a = 5; print(v); exit(0); }
$ -x errtags -q -s a.d
|struct c {
|    union  {
|        int a = 0x5
|        char [4] b = [ '\005', '\0', '\0', '\0' ]
|    }
|    struct in = {
|        int x = 0
|    }
|    int (*)() g = 0
|    int *[2] h = [ 0, 0 ]
|}

> a.d
|BEGIN { printf("%d\n", 1 ? 2 : 3); printf("%s\n", 0 ? "a" : "b"); x = 1; y = x ? "t" : "f"; printf("%s\n", y); exit(0);}
$ -x errtags -q -s a.d
|2
|b
|t
|

> a.d
|BEGIN { x = (1, 2, 3); printf("%d\n", x); y = x++ + ++x; printf("%d %d\n", x, y); exit(0);}
$ -x errtags -q -s a.d
|3
|5 8
|

> a.d
|BEGIN { this->a = 1; } BEGIN { this->a++; } BEGIN { printf("%d\n", this->a); exit(0);}
$ -x errtags -q -s a.d
|2
|

> a.d
|dtrace:::BEGIN, dtrace:::END { printf("%s\n", probename); } BEGIN { exit(0); }
$ -x errtags -q -s a.d
|BEGIN
|END
|

> a.d
|fbt::namei:entry { printf("%s\n", copyinstr(arg0)); printf("%s\n", copyinstr(arg0, 4)); printf("%s\n", stringof(copyin(arg0, 5))); this->b = alloca(8); copyinto(arg0, 8, this->b); printf("%s\n", stringof((char *)this->b)); exit(0); }
$ -x errtags -q -s a.d
|/etc/motd
|/etc
|/etc/
|/etc/mot
|

> a.d
|fbt::sys_read:entry { print(*args[1]); print(args[1]->nbyte); printf("%d %s\n", args[0]->td_proc->p_pid, args[0]->td_proc->p_comm); exit(0); }
$ -x errtags -q -s a.d
|struct read_args {
|    int fd = 0x3
|    char *buf = 0x406000
|    unsigned long nbyte = 0x200
|}unsigned long 0x200
|42 kernel
|

> a.d
|int ARR[int, string]; BEGIN { ARR[1, "a"] = 5; printf("%d\n", ARR[1, "a"]); exit(0);}
$ -x errtags -q -s a.d
|5
|

> a.d
|string s; BEGIN { s = "abc"; s = strjoin(s, "def"); printf("%s %d %c\n", s, strlen(s), s[1]); exit(0);}
$ -x errtags -q -s a.d
|abcdef 6 b
|

> a.d
|uint64_t u; int64_t i; BEGIN { u = -1; i = -1; printf("%u %d %x\n", u, i, u); printf("%d\n", u > i); printf("%d\n", (int)u < 0); exit(0); }
$ -x errtags -q -s a.d
|18446744073709551615 -1 ffffffffffffffff
|0
|1
|

> a.d
|BEGIN { printf("%d %d %d\n", 0x7fffffff + 1, 2147483648, -2147483648); printf("%d\n", 1 - 2u); printf("%u\n", 1 - 2u); printf("%d\n", 'a' + 1); exit(0);}
$ -x errtags -q -s a.d
|-2147483648 2147483648 -2147483648
|4294967295
|4294967295
|98
|

> a.d
|BEGIN { exit(0); printf("still\n"); } BEGIN { printf("never\n"); }
$ -x errtags -q -s a.d
|still
|

> a.d
|BEGIN { x = 0; y = 5 / x; printf("never\n"); } BEGIN { printf("next\n"); exit(0); }
$ -x errtags -q -s a.d
|next
|
!dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): divide-by-zero in action #2 at DIF offset 8

> a.d
|BEGIN { self->a[1] = 3; self->a[2]++; printf("%d %d %d\n", self->a[1], self->a[2], self->a[3]); exit(0); }
$ -x errtags -q -s a.d
|3 1 0
|

> a.d
|struct s { int a; struct { int b; int c[3]; } d; }; struct s x[int]; BEGIN { x[1].d.c[2] = 9; printf("%d %d\n", x[1].d.c[2], x[1].a); exit(0); }
$ -x errtags -q -s a.d
|9 0
|

> a.d
|char buf[8]; BEGIN { buf[0] = 'h'; buf[1] = 'i'; printf("%s %s\n", buf, stringof(buf)); exit(0); }
$ -x errtags -q -s a.d
|hi hi
|

> a.d
|string arr[3]; BEGIN { arr[0] = "a"; arr[2] = "c"; printf("%s%s%s\n", arr[0], arr[1], arr[2]); exit(0); }
$ -x errtags -q -s a.d
|ac
|

> a.d
|BEGIN { x[execname, pid, "k"] = 1; y = x[execname, pid, "k"]; printf("%d\n", y); exit(0);}
$ -x errtags -q -s a.d
|1
|

> a.d
|inline int MASK = 0xff; inline string N = "a"; enum { E1 = 1 << 3, E2 }; int t[MASK]; BEGIN { printf("%d %d %d\n", E2, sizeof (t), N == "a"); exit(0);}
$ -x errtags -q -s a.d
|9 1020 1
|

> a.d
|typedef int myint; typedef myint *myptr; myptr p; myint v[2]; BEGIN { p = v; *p = 3; p++; *p = 4; printf("%d %d\n", v[0], v[1]); exit(0);}
$ -x errtags -q -s a.d
|3 4
|

> a.d
|BEGIN { p = &`ticks; printf("%d %d\n", *p, *(&`ticks)); q = `head.next; printf("%d\n", q->value); exit(0); }
$ -x errtags -q -s a.d
|1234 1234
|20
|

> a.d
|BEGIN { printf("%s", stringof(1 == 1 ? "yes" : "no")); printf("%d", sizeof ("abc" )); exit(0); }
$ -x errtags -q -s a.d
|yes4

> a.d
|BEGIN { @a = count(); @b = count(); printa("%@d %@d\n", @a, @b); printa("x%@5dx\n", @a); exit(0); }
$ -x errtags -q -s a.d
|1 1
|x    1x
|

> a.d
|uint8_t u8; int8_t i8; BEGIN { u8 = 255; u8++; i8 = 127; i8++; printf("%d %d %d\n", u8, i8, u8 == 0); exit(0); }
$ -x errtags -q -s a.d
|0 -128 0
|

> a.d
|BEGIN { this->p = (char *)alloca(4); *this->p = 'x'; this->p[1] = '\0'; printf("%s\n", stringof(this->p)); ((int *)alloca(8))[1] = 3; exit(0); }
$ -x errtags -q -s a.d
|x
|

> a.d
|BEGIN { s = "hello"; printf("%c %s\n", *s, s + 1); this->t = substr(s, 1); this->t[0] = 'E'; printf("%s\n", this->t); exit(0); }
$ -x errtags -q -s a.d
|h ello
|Ello
|

> a.d
|int i; BEGIN { i = 5; i++; ++i; i--; printf("%d\n", i++ + i--); exit(0); }
$ -x errtags -q -s a.d
|13
|

> a.d
|BEGIN { printf("%d %d\n", sizeof (char), sizeof (sizeof (int))); printf("%d\n", sizeof (pid) + sizeof (struct vnode)); exit(0); }
$ -x errtags -q -s a.d
|1 8
|28
|

> a.d
|BEGIN { x = 5; if (x > 3 && x < 10) { printf("in\n"); if (x == 5) { printf("five\n"); } else { printf("no\n"); } } else if (x == 1) { printf("one\n"); } else { printf("out\n"); } printf("after\n"); exit(0); }
$ -x errtags -q -s a.d
|in
|five
|after
|

> a.d
|BEGIN { x = 0; if (x) { printf("a\n"); if (1) printf("b\n"); else printf("c\n"); } else { if (x == 0) printf("d\n"); else printf("e\n"); } exit(0); }
$ -x errtags -q -s a.d
|d
|

> a.d
|BEGIN { @a[1] = quantize(5, 3); @b["x"] = lquantize(15, 0, 100, 10, -2); @c = llquantize(500, 10, 0, 6, 20, 4); exit(0); }
$ -x errtags -q -s a.d
|
|        1
|           value  ------------- Distribution ------------- count    
|               2 |                                         0        
|               4 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 3        
|               8 |                                         0        
|
|  x                                                 
|           value  ------------- Distribution ------------- count    
|               0                                         | 0        
|              10 @@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@| -2       
|              20                                         | 0        
|
|
|           value  ------------- Distribution ------------- count    
|             450 |                                         0        
|             500 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 4        
|             550 |                                         0        
|

> a.d
|struct s { int a:3; unsigned b:5; char c; long d:40; }; struct s v;
|BEGIN { v.a = 3; v.b = 17; v.c = 'x'; v.d = 0x123456789a; printf("%d %d %c %x %d\n", v.a, v.b, v.c, v.d, sizeof (struct s)); v.a = 7; print(v); exit(0); }
$ -x errtags -q -s a.d
|3 17 x 123456789a 16
|struct s {
|    int a :3 = 0x7
|    unsigned int b :5 = 0x11
|    char c = 'x'
|    long d :40 = 0x123456789a
|}

> a.d
|union u { int i; char c[4]; short s[2]; }; union u v;
|BEGIN { v.i = 0x41424344; printf("%c%c %x\n", v.c[0], v.c[3], v.s[1]); exit(0);}
$ -x errtags -q -s a.d
|DA 4142
|

> a.d
|enum color { RED, GREEN = 5, BLUE }; enum color c; enum color d[2];
|BEGIN { c = BLUE; printf("%d %d\n", c, c == GREEN); print(c); trace(sizeof (enum color)); exit(0);}
$ -x errtags -q -s a.d
|6 0
|enum color BLUE
|4

> a.d
|typedef struct pt { int x, y; } pt_t; pt_t p; pt_t *q; pt_t arr[3];
|BEGIN { p.x = 1; p.y = 2; arr[1] = p; arr[1].y++; printf("%d %d %d\n", arr[1].x, arr[1].y, arr[0].x); self->p = p; printf("%d\n", self->p.y); this->p = arr[1]; this->q = &arr[1]; printf("%d\n", this->p.y);exit(0);}
$ -x errtags -q -s a.d
|1 3 0
|2
|3
|

> a.d
|BEGIN { printf("%d %d %d %d\n", -7/2, -7%2, 7 % -2, 1 << 40); printf("%d %x %o %u\n", ~0, -1, 8, -1); printf("%d\n", 5 ^^ 0); printf("%d %d\n", (char)300, (unsigned char)300); exit(0);}
$ -x errtags -q -s a.d
|-3 -1 1 0
|-1 ffffffff 10 4294967295
|1
|44 44
|

> a.d
|BEGIN { printf("%s %s %s|%s|%s\n", substr("hello", 1, 3), substr("hello", -3), strtok("a,b,c", ","), strtok(NULL, ","), strjoin("a", "b")); printf("%d %d %d\n", index("hello", "l"), rindex("hello", "l"), index("hello","z")); printf("%s %s %s\n", strchr("hello", 'l'), strrchr("hello", 'l'), strstr("hello", "ll")); printf("%s %s %s\n", basename("/a/b/"), dirname("/a/b/"), cleanpath("/a/../b/./c")); printf("%s %s %s\n", toupper("abC"), tolower("ABc"), lltostr(-255)); printf("%s %s %d\n", lltostr(255, 16), lltostr(8, 8), strtoll("0xff", 16)); exit(0); }
$ -x errtags -q -s a.d
|ell llo a|b|ab
|2 3 -1
|llo lo llo
|b /a /b/c
|ABC abc -255
|0xff 010 255
|

> a.d
|BEGIN { printf("%s\n", json("{\"a\": {\"b\": [1, 2, {\"c\": \"deep\"}]}, \"d\": true}", "a.b[2].c")); printf("%s\n", json("{\"a\": 1}", "zz") == NULL ? "null" : "x"); exit(0);}
$ -x errtags -q -s a.d
|deep
|null
|

> a.d
|BEGIN { printf("%d %d %d\n", htons(0x1234), htonl(0x12345678), ntohll(1)); printf("%s %s\n", inet_ntoa((ipaddr_t *)alloca(4)), inet_ntop(AF_INET, alloca(4))); exit(0); }
$ -x errtags -q -s a.d
|13330 2018915346 72057594037927936
|0.0.0.0 0.0.0.0
|

> a.d
|BEGIN { @a["x"] = count(); @b["x"] = sum(10); @c["y"] = avg(3); printa("%s %@d %@d\n", @a, @b); printa(@a); printa(@a, @b); exit(0); } END { printa("end %s %@d\n", @c); }
$ -x errtags -q -s a.d
|x 1 10
|
|  x                                                                 1
|
|  x                                                                 1               10
|end y 3
|

> a.d
|BEGIN { @a[1] = sum(1); @a[2] = sum(20); @a[3] = sum(300); trunc(@a, 2); normalize(@a, 10); printa("%d %@d\n", @a); denormalize(@a); printa("%d %@d\n", @a); clear(@a); printa(@a); trunc(@a); exit(0); }
$ -x errtags -q -s a.d
|2 2
|3 30
|2 20
|3 300
|
|        2                0
|        3                0
|

> a.d
|BEGIN { exit(3); } END { printf("end\n"); }
$ -x errtags -q -s a.d
|end
|
= 3

> a.d
|ERROR { printf("%d %d %d %d %x\n", arg1 > 0, arg2, arg3, arg4, arg5); } BEGIN { *(int *)0x10; } BEGIN { x = 1 / (pid - pid); } BEGIN { exit(0); }
$ -x errtags -q -s a.d
|1 1 16 1 10
|1 1 16 4 10
|
!dtrace: error on enabled probe ID 2 (ID 1: dtrace:::BEGIN): invalid address (0x10) in action #1 at DIF offset 16
!dtrace: error on enabled probe ID 3 (ID 1: dtrace:::BEGIN): divide-by-zero in action #1 at DIF offset 16

> a.d
|BEGIN { printf("%d", DTRACEFLT_BADADDR); printf(" %d %d", DTRACEFLT_DIVZERO, DTRACEFLT_BADSTACK); exit(0);}
$ -x errtags -q -s a.d
|1 4 9

> a.d
|BEGIN { self->spec = speculation(); speculate(self->spec); printf("spec\n"); } BEGIN { commit(self->spec); } BEGIN { this->x = speculation(); printf("%d\n", this->x); exit(0); }
$ -x errtags -q -s a.d
|spec
|1
|

> a.d
|BEGIN { if (1) { printf("yes\n"); } else { printf("no\n"); } if (pid == 0) printf("0\n"); else if (pid > 1) printf("more\n"); exit(0); }
$ -x errtags -q -s a.d
|yes
|more
|

> a.d
|inline string hi = "hello"; inline int dbl[int x] = x * 2; BEGIN { printf("%s %d %d\n", hi, dbl[4], dbl[dbl[3]]); exit(0); }
$ -x errtags -q -s a.d
|hello 8 12
|

> a.d
|BEGIN { x = 'a'; y = 'ab'; z = '\0'; w = '\x41'; printf("%d %x %d %d\n", x, y, z, w); printf("a\tb\\n\x41\101\n"); printf("%s\n", "q\"q"); exit(0); }
$ -x errtags -q -s a.d
|97 6162 0 65
|a	b\nAA
|q"q
|

> a.d
|BEGIN { trace(1); trace("abc"); trace((char)65); trace((short)5); trace(5L); trace(`proc0.p_comm); tracemem(&`proc0, 16); tracemem(&`proc0, 32, 8); exit(0);}
$ -x errtags -q -s a.d
|1abc6555kernel
|             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
|         0: 2a 00 00 00 6b 65 72 6e 65 6c 00 00 00 00 00 00  *...kernel......
|
|             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
|         0: 2a 00 00 00 6b 65 72 6e                          *...kern
|

> a.d
|this int z; BEGIN { this->z = 5; this->str = "x"; } BEGIN { printf("%d %s\n", this->z, this->str); exit(0);}
$ -x errtags -q -s a.d
|5 x
|

> a.d
|BEGIN { a[1] = 1; a[2] = 2; a[1] = 0; printf("%d %d\n", a[1], a[2]); b["x"]++; b["x"] += 5; printf("%d\n", b["x"]); exit(0);}
$ -x errtags -q -s a.d
|0 2
|6
|

> a.d
|#pragma D option version=1.0
|BEGIN { trace(strtok("a", "b")); exit(0); }
$ -x errtags -q -s a.d
!dtrace: failed to compile script ...: [D_FUNC_UNDEF] line 2: undefined function name: strtok (did you mean strjoin?)
= 1
