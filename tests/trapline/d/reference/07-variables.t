# Variables: creation, storage, writing, kernel memory (section 7)

$ -x errtags -n 'int x; BEGIN { x = 5; x += 2.0; }'
!dtrace: invalid probe specifier ...: [D_SYNTAX] in action list: D has no floating-point literals: syntax error near "2.0"
= 1

$ -q -n 'int x; char c; string s; int a[int, string]; int arr[4]; self int y; this short z; struct proc *p; uint8_t u8; BEGIN { c = 200; x = c; s = "abc"; a[1, "x"] = 5; arr[2] = 7; self->y = 9; this->z = 70000; u8 = 300; p = &`proc0; printf("%d %d %s %d %d %d %d %d %d %d\n", x, c, s, a[1, "x"], a[2, "x"], arr[2], arr[0], self->y, this->z, u8); printf("%d\n", p->p_pid); exit(0); }'
|200 -56 abc 5 0 7 0 9 4464 44
|42
|

$ -x errtags -n 'BEGIN { trace(x); x = 1; }'
!dtrace: invalid probe specifier ...: [D_IDENT_UNDEF] in action list: failed to resolve x: unknown variable name
= 1

$ -x errtags -n 'BEGIN { x = 1; x = "abc"; }'
!dtrace: invalid probe specifier ...: [D_OP_INCOMPAT] in action list: x is int: string cannot be assigned to it
= 1

$ -x errtags -n 'BEGIN { x = 1; x = 5LL; trace(x); trace(sizeof(x)); exit(0)}'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         5                4
|

$ -x errtags -n 'BEGIN { x++; trace(x); trace(sizeof(x)); y++; y += 4; trace(y); --z; trace(z); self->q++; trace(self->q); exit(0)}'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN                 1                8                5               -1                1
|

$ -x errtags -n 'BEGIN { x = 1; x[1] = 2; }'
!dtrace: invalid probe specifier ...: [D_DEREF_NONPTR] in action list: operator * needs a pointer, not int
= 1

$ -x errtags -n 'BEGIN { x[1] = 2; x = 1; }'
!dtrace: invalid probe specifier ...: [D_IDENT_BADREF] in action list: x is an array: name an element, x[...]
= 1

$ -x errtags -n 'BEGIN { x[1] = 2; x["a"] = 1; }'
!dtrace: invalid probe specifier ...: [D_PROTO_ARG] in action list: x[ ] key #1 is incompatible with its prototype: int wanted, string given
= 1

$ -x errtags -n 'BEGIN { x[1] = 2; x[1,2] = 1; }'
!dtrace: invalid probe specifier ...: [D_PROTO_LEN] in action list: x[ ] has 1 key, not 2
= 1

$ -x errtags -n 'BEGIN { x[1] = 2; x[(char)1] = 3; trace(x[1L]); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         3
|

$ -x errtags -n 'BEGIN { x["a"] = 2; x[execname] = 3; trace(x["sh"] + x["a"]); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         5
|

$ -x errtags -n 'BEGIN { x[`proc0.p_comm] = 2; trace(x["kernel"]);  exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         2
|

$ -x errtags -n 'BEGIN { self->x[pid, execname] = 2; trace(self->x[pid, "sh"]); self->x[pid, execname] = 0; trace(self->x[pid, "sh"]); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         2        0
|

$ -x errtags -n 'BEGIN { this->x[1] = 2; }'
!dtrace: invalid probe specifier ...: [D_ARR_LOCAL] in action list: this->x cannot be an associative array
= 1

$ -x errtags -n 'this int x[int];'
!dtrace: invalid probe specifier ...: [D_DECL_LOCASSC] this->x cannot be an associative array
= 1

$ -x errtags -n 'int x = 5;'
!dtrace: invalid probe specifier ...: [D_SYNTAX] syntax error (is a ';' missing before it?) near "="
= 1

$ -x errtags -n 'int pid;'
!dtrace: invalid probe specifier ...: [D_DECL_IDRED] pid is built in already
= 1

$ -x errtags -n 'int uint8_t;'
!dtrace: invalid probe specifier ...: [D_DECL_IDRED] uint8_t is defined already
= 1

$ -x errtags -n 'int int;'
!dtrace: invalid probe specifier ...: [D_DECL_COMBO] 'int int' is not a type
= 1

$ -x errtags -n 'typedef int foo; int foo; BEGIN { exit(0); }'
!dtrace: invalid probe specifier ...: [D_DECL_IDRED] foo is defined already
= 1

$ -x errtags -n 'typedef int foo; BEGIN { foo = 5; }'
|

$ -x errtags -n 'BEGIN { self->x = 1; self->x = "abc"; }'
!dtrace: invalid probe specifier ...: [D_OP_INCOMPAT] in action list: self->x is int: string cannot be assigned to it
= 1

$ -x errtags -n 'string s; BEGIN { s = 1; }'
!dtrace: invalid probe specifier ...: [D_OP_INCOMPAT] in action list: s is string: int cannot be assigned to it
= 1

$ -x errtags -n 'string s; BEGIN { s = NULL; trace(s == ""); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         1
|

$ -x errtags -n 'string s; BEGIN { trace(s == ""); trace(s == NULL); trace(self->s == NULL); self->s = "x"; exit(0); }'
!dtrace: invalid probe specifier ...: [D_VAR_UNDEF] in action list: self->s has not been declared or assigned
= 1

$ -x errtags -n 'self string s; BEGIN { trace(self->s == ""); trace(self->s == NULL); self->s = "x"; trace(self->s == NULL); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         1        1        0
|

$ -x errtags -n 'BEGIN { self->s = "abc"; self->s = 0; trace(self->s == NULL); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         1
|

$ -x errtags -n 'BEGIN { s = "abc"; s = 0; exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

$ -x errtags -n 'string s; BEGIN { s = `proc0.p_comm; trace(s); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN   kernel                           
|

$ -x errtags -n 'string s; BEGIN { s = (char *)`proc0.p_comm; trace(s); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN   kernel                           
|

$ -x errtags -n 'BEGIN { s = `proc0.p_comm; trace(s); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN   kernel                           
|

$ -x errtags -n 'BEGIN { p = &`proc0; trace(p->p_pid); self->p = p; trace(self->p->p_comm); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN        42  kernel                           
|

$ -x errtags -n 'struct vnode v; BEGIN { v = `rootvnode; print(v); v.v_flag = 2; v.v_name[0] = '\''R'\''; print(v); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN struct vnode {
|    enum vtype v_type = VDIR
|    unsigned int v_flag :3 = 0x5
|    int v_kind :5 = 0x1d
|    char [8] v_name = [ "root" ]
|    struct vnode *v_parent = 0
|}struct vnode {
|    enum vtype v_type = VDIR
|    unsigned int v_flag :3 = 0x2
|    int v_kind :5 = 0x1d
|    char [8] v_name = [ "Root" ]
|    struct vnode *v_parent = 0
|}
|

$ -x errtags -n 'struct vnode v; BEGIN { v = `proc0; }'
!dtrace: invalid probe specifier ...: [D_OP_INCOMPAT] in action list: v is struct vnode: struct proc cannot be assigned to it
= 1

$ -x errtags -n 'struct vnode v[int]; BEGIN { v[1] = `rootvnode; v[1].v_type = VREG; print(v[1]); exit(0); }'
!dtrace: invalid probe specifier ...: [D_IDENT_UNDEF] in action list: failed to resolve VREG: unknown variable name
= 1

$ -x errtags -n 'struct vnode *v; BEGIN { v = alloca(sizeof(struct vnode)); v->v_type = VDIR; v->v_flag = 9; print(*v); exit(0); }'
!dtrace: invalid probe specifier ...: [D_IDENT_UNDEF] in action list: failed to resolve VDIR: unknown variable name
= 1

$ -x errtags -n 'int a[4]; int b[4]; BEGIN { a = b; }'
!dtrace: invalid probe specifier ...: [D_OP_ARRFUN] in action list: operator =: a whole array cannot be assigned
= 1

$ -x errtags -n 'int a[4]; BEGIN { a[1] = 5; a[2]++; trace(a[1] + a[2]); print(a); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         6int [4] [ 0, 0x5, 0x1, 0 ]
|
|

$ -x errtags -n 'char a[8]; BEGIN { a[0] = '\''h'\''; a[1] = '\''i'\''; trace(a); trace(stringof(a)); printf("%s", a); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN             26984  hi                               hi
|

$ -x errtags -n 'int a[2][3]; BEGIN { a[1][2] = 7; trace(a[1][2]); trace(sizeof(a)); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         7               24
|

$ -x errtags -n 'int a[int][3]; BEGIN { }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

$ -x errtags -n 'int a[3][int]; BEGIN { }'
!dtrace: invalid probe specifier ...: [D_DECL_DYNOBJ] a: an associative array cannot be part of an array
= 1

$ -x errtags -n 'BEGIN { `ticks = 5; }'
!dtrace: invalid probe specifier ...: [D_OP_WRITE] in action list: operator =: kernel memory cannot be written
= 1

$ -x errtags -n 'BEGIN { `proc0.p_pid = 5; }'
!dtrace: invalid probe specifier ...: [D_OP_WRITE] in action list: operator =: kernel memory cannot be written
= 1

$ -x errtags -n 'BEGIN { curthread->td_tid = 5; }'
!dtrace: invalid probe specifier ...: [D_OP_WRITE] in action list: operator =: kernel memory cannot be written
= 1

$ -x errtags -n 'BEGIN { pid = 1; }'
!dtrace: invalid probe specifier ...: [D_OP_WRITE] in action list: operator =: pid cannot be written
= 1

$ -x errtags -n 'BEGIN { arg0 = 1; }'
!dtrace: invalid probe specifier ...: [D_OP_WRITE] in action list: operator =: arg0 cannot be written
= 1

$ -x errtags -n 'BEGIN { 1 = 2; }'
!dtrace: invalid probe specifier ...: [D_OP_LVAL] in action list: operator = needs a variable on its left
= 1

$ -x errtags -n 'BEGIN { x = 1; (x + 1) = 2; }'
!dtrace: invalid probe specifier ...: [D_OP_LVAL] in action list: operator = needs a variable on its left
= 1

$ -x errtags -n 'BEGIN { x = y = 5; trace(x + y); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN        10
|

$ -x errtags -n 'BEGIN { x = 1; x <<= 4; x |= 3; x ^= 1; x &= 0xfe; x -= 2; x *= 3; x /= 2; x %= 7; x >>= 1; trace(x); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         1
|

$ -x errtags -n 'BEGIN { x = 1; x /= 0; }'
!dtrace: invalid probe specifier ...: [D_DIV_ZERO] in action list: operator / with a constant zero on its right
= 1

$ -x errtags -n 'BEGIN { x = 1; x %= 0; }'
!dtrace: invalid probe specifier ...: [D_DIV_ZERO] in action list: operator % with a constant zero on its right
= 1

$ -x errtags -n 'BEGIN { x = "abc"; x += 1; }'
!dtrace: invalid probe specifier ...: [D_OP_INCOMPAT] in action list: operator += cannot take string and int
= 1

$ -x errtags -n 'BEGIN { x = (int *)8; x += 2; trace(x); x++; trace(x); x -= 1; trace(x); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN                16               20               16
|

$ -x errtags -n 'BEGIN { x = (void *)8; x++; }'
!dtrace: invalid probe specifier ...: [D_OP_VFPTR] in action list: arithmetic on a pointer to void: cast it first
= 1

$ -x errtags -n 'BEGIN { x = (void *)8; x += 1; }'
!dtrace: invalid probe specifier ...: [D_OP_VFPTR] in action list: operator += needs a number or a pointer of a known type on its left, not void *
= 1

$ -x errtags -n 'BEGIN { this->a = 1; } BEGIN { trace(this->a); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         1
|

$ -x errtags -n 'BEGIN { self->x = 1; exit(0) } END { trace(self->x); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|  0      2                             :END         1
|

$ -x errtags -n 'fbt::malloc:entry { self->t = timestamp; } fbt::malloc:return /self->t/ { trace(timestamp - self->t); self->t = 0; }'
|CPU     ID                    FUNCTION:NAME
|  0     20                    malloc:return              5000
|  0     20                    malloc:return            250000
|  0     20                    malloc:return             30000
|  0     20                    malloc:return             10000
|

$ -x errtags -n 'fbt::sys_read:entry { this->x = arg0; } fbt::sys_read:return { trace(this->x); }'
|CPU     ID                    FUNCTION:NAME
|  0     18                  sys_read:return       -2147439680
|  0     18                  sys_read:return       -2147439680
|  0     18                  sys_read:return       -2147439680
|  0     18                  sys_read:return       -2147439680
|

$ -x errtags -n 'BEGIN { x[1] = 0; x[2]++; x[2] += 5; trace(x[2]); x[2]--; trace(x[2]++); trace(--x[2]); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         6        5        5
|

$ -x errtags -n 'BEGIN { trace(nosuch[1]); }'
!dtrace: invalid probe specifier ...: [D_VAR_UNDEF] in action list: nosuch[ ] has not been declared or assigned
= 1

$ -x errtags -n 'BEGIN { trace(self->nosuch[1]); }'
!dtrace: invalid probe specifier ...: [D_VAR_UNDEF] in action list: self->nosuch[ ] has not been declared or assigned
= 1

$ -x errtags -n 'int x[int]; BEGIN { trace(x); }'
!dtrace: invalid probe specifier ...: [D_IDENT_BADREF] in action list: x is an array: name an element, x[...]
= 1

$ -x errtags -n 'int x; BEGIN { trace(x[1]); }'
!dtrace: invalid probe specifier ...: [D_DEREF_NONPTR] in action list: operator * needs a pointer, not int
= 1

$ -x errtags -n 'int x; BEGIN { trace(x[1, 2]); }'
!dtrace: invalid probe specifier ...: [D_ARR_BADREF] in action list: several keys, but this is not an associative array
= 1

$ -x errtags -n 'BEGIN { execname[1] = 2; }'
!dtrace: invalid probe specifier ...: [D_OP_WRITE] in action list: operator =: kernel memory cannot be written
= 1

$ -x errtags -n 'BEGIN { trace(execname[0]); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN  115
|

$ -x errtags -n 'BEGIN { s = "abc"; trace(s[1]); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN   98
|

$ -x errtags -n 'BEGIN { strlen = 1; }'
!dtrace: invalid probe specifier ...: [D_IDENT_BADREF] in action list: strlen is a function: call it as strlen(...)
= 1

$ -x errtags -n 'BEGIN { trace = 1; }'
!dtrace: invalid probe specifier ...: [D_IDENT_BADREF] in action list: trace is a function: call it as trace(...)
= 1

$ -x errtags -n 'BEGIN { x = trace; }'
!dtrace: invalid probe specifier ...: [D_IDENT_BADREF] in action list: trace is a function: call it as trace(...)
= 1

$ -x errtags -n 'BEGIN { VREG = 1; }'
|

$ -x errtags -n 'BEGIN { @a = 1; }'
!dtrace: invalid probe specifier ...: [D_AGG_FUNC] in action list: @a must be assigned the result of an aggregating function, such as count( )
= 1

$ -x errtags -n 'BEGIN { x = @a; }'
!dtrace: invalid probe specifier ...: [D_IDENT_UNDEF] in action list: failed to resolve @a: no such aggregation
= 1

$ -x errtags -n 'BEGIN { @a[1] = count(); x = @a[1]; }'
!dtrace: invalid probe specifier ...: [D_OP_INCOMPAT] in action list: aggregation @a: printa() prints it, but it has no value, so it cannot be assigned
= 1

$ -q -n 'int x[10,20];'
!dtrace: invalid probe specifier int x[10,20];: syntax error near ","
= 1

$ -x errtags -n 'int x[];'
!dtrace: invalid probe specifier ...: [D_DECL_ARRNULL] x needs a size or keys in its brackets
= 1

$ -x errtags -n 'int x[-1];'
!dtrace: invalid probe specifier ...: [D_DECL_ARRSUB] the size of x is not a positive constant
= 1

$ -x errtags -n 'int x[int, ...];'
!dtrace: invalid probe specifier ...: [D_DECL_PROTO_VARARGS] a list of keys cannot end in ...
= 1

$ -x errtags -n 'int x[void];'
!dtrace: invalid probe specifier ...: [D_DECL_PROTO_TYPE] a key cannot be void
= 1

$ -x errtags -n 'int x[int a];  BEGIN { x[1] = 2; trace(x[1]); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         2
|

$ -x errtags -n 'BEGIN { x[1,2,3,4,5,6,7,8] = 1; trace(x[1,2,3,4,5,6,7,8]); exit(0);  }'
!dtrace: invalid probe specifier ...: [D_NOREG] in action list: the expression needs more than 7 registers at once: use a this-> variable
= 1

$ -x errtags -n 'BEGIN { x[1,2,3,4,5,6,7,8,9] = 1; trace(x[1,2,3,4,5,6,7,8,9]); exit(0);  }'
!dtrace: invalid probe specifier ...: [D_NOREG] in action list: a tuple holds 8 values, not 9
= 1

$ -x errtags -n 'BEGIN { self->x[1,2,3,4,5,6,7] = 1; trace(self->x[1,2,3,4,5,6,7]); exit(0);  }'
!dtrace: invalid probe specifier ...: [D_NOREG] in action list: the expression needs more than 7 registers at once: use a this-> variable
= 1

$ -x errtags -n 'BEGIN { this->s = "abc"; this->p = &`proc0; trace(this->s); trace(this->p->p_pid); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN   abc                                     42
|

$ -x errtags -n 'self struct vnode v; BEGIN { self->v = `rootvnode; trace(self->v.v_type); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         5
|

$ -x errtags -n 'this struct vnode v; BEGIN { this->v.v_type = 1; trace(this->v.v_type); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         1
|

$ -x errtags -n 'int x; int x; BEGIN { exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

$ -x errtags -n 'int x; long x;'
!dtrace: invalid probe specifier ...: [D_DECL_IDRED] x is int already
= 1

$ -x errtags -n 'self int x; int x; this string x; BEGIN { x = 1; self->x = 2; this->x = "a"; trace(x); trace(self->x); trace(this->x); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         1        2  a                                
|

$ -x dynvarsize=512 -n 'BEGIN { x[1] = 1; x[2] = 1; x[3] = 1; x[4] = 1; x[5] = 1;x[6]=1; x[7] = 1; x[8] = 1; x[9] = 1; exit(0) }'
|
!dtrace: 1 dynamic variable drop

$ -x errtags -n 'string s[int]; char big[20000]; BEGIN { s[1] = "abc"; trace(s[1]); big[0] = 1; exit(0); }'
!dtrace: failed to enable 'string s[int]': DIF program content is invalid (DIF object error: [0]: oversized by-ref static)
= 1

$ -qn 'struct p { int a; char s[8]; string t; int z; }; struct p x; BEGIN { x.a = 3; x.t = "hello"; x.z = 7; printf("%d %s %d %d\n", x.a, x.t, x.z, sizeof(struct p)); print(x); exit(0); }'
|3 hello 7 272
|struct p {
|    int a = 0x3
|    char [8] s = [ "" ]
|    string t = "hello"
|    int z = 0x7
|}

$ -qn 'string q[3]; BEGIN { q[1] = "one"; q[2] = strjoin(q[1], "two"); printf("%s|%s|%s %d\n", q[1], q[2], q[0], sizeof(q)); exit(0); }'
|one|onetwo| 768
|

$ -qn 'struct p { int a; string s; }; struct p arr[int]; BEGIN { arr[1].s = "x"; arr[1].a = 3; arr[2].s = arr[1].s; printf("%d %s %s\n", arr[1].a, arr[1].s, arr[2].s); exit(0); }'
|3 x x
|

$ -qn 'struct p { string s; }; BEGIN { this->p = (struct p *)alloca(sizeof(struct p)); this->p->s = execname; printf("%s %d\n", this->p->s, offsetof(struct p, s)); exit(0); }'
|sh 0
|

$ -qn 'typedef struct foo { string name; int twice; } foo_t; translator foo_t < int x > { twice = x * 2; name = x ? "something" : "nothing"; }; this foo_t f; BEGIN { this->f = xlate <foo_t> (4); printf("%s %d\n", this->f.name, this->f.twice); exit(0); }'
|something 8
|

$ -x errtags -qn 'struct p { char s[8]; }; struct p x; BEGIN { x.s = "hello"; exit(0); }'
!dtrace: invalid probe specifier ...: [D_OP_ARRFUN] in action list: operator =: a whole array cannot be assigned
= 1
