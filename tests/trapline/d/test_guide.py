"""Programs in the manner of the DTrace guide's chapters, each with the text that it prints."""

from __future__ import annotations

import pytest

from tests.trapline.d.reference.scene import run_scene

PROGRAMS = [
    (
        'BEGIN { printf("[%-6d|%06d|%+d|% d|%x|%#o|%5.3d]", 42, 42, 42, 42, 255, 8, 7); }',
        "[42    |000042|+42| 42|ff|010|  007]",
    ),
    ('BEGIN { printf("[%*d|%-*d|%.*s]", 6, 42, 6, 42, 2, "abc"); }', "[    42|42    |ab]"),
    ('BEGIN { c = (char)-1; printf("%d %u %x", c, c, c); }', "-1 255 ff"),
    ('BEGIN { x = 1; printf("%s", x ? "yes" : "no"); }', "yes"),
    ('BEGIN { a[1, "x", probename] = 7; printf("%d %d", a[1, "x", "BEGIN"], a[2, "x", "BEGIN"]); }', "7 0"),
    ('self int q; BEGIN { self->q = 3; self->z[1] = "k"; printf("%d %s", self->q, self->z[1]); }', "3 k"),
    ('this int t; BEGIN { this->t = 5; } BEGIN { printf("%d", this->t); }', "5"),
    (
        (
            "struct s { char a; int b; char c[3]; long d; }; "
            "BEGIN { "
            'printf("%d %d %d %d", sizeof (struct s), offsetof(struct s, d), sizeof (int *), sizeof ("abc")); }'
        ),
        "24 16 8 4",
    ),
    ('enum e { A, B = 5, C }; BEGIN { printf("%d %d", C, sizeof (enum e)); }', "6 4"),
    (('union u { int i; char c[4]; }; union u g; BEGIN { g.i = 0x01020304; printf("%d %d", g.c[0], g.c[3]); }'), "4 1"),
    (
        ('struct b { int x:3; unsigned y:5; }; struct b g; BEGIN { g.x = 3; g.y = 31; printf("%d %d", g.x, g.y); }'),
        "3 31",
    ),
    ('struct b { int x:3; }; struct b g; BEGIN { g.x = 7; printf("%d", g.x); }', "-1"),
    (
        (
            "BEGIN { printf"
            '("%s %s %s", strtok("a:b", ":"), strtok(NULL, ":"), strtok(NULL, ":") == NULL ? "end" : "more"); }'
        ),
        "a b end",
    ),
    (
        'BEGIN { printf("[%s][%s][%s]", substr("hello", 1, 3), substr("hello", -3), substr("hello", 9)); }',
        "[ell][llo][]",
    ),
    ('BEGIN { printf("%d %d %d", index("abcabc", "c"), rindex("abcabc", "c"), index("abc", "z")); }', "2 5 -1"),
    ('BEGIN { printf("%s %s %s", lltostr(-5), lltostr(255, 16), lltostr(8, 8)); }', "-5 0xff 010"),
    ('BEGIN { printf("%d %d %d", strtoll("  -12x"), strtoll("0x1f", 16), strtoll("777", 8)); }', "-12 31 511"),
    ('BEGIN { trace(copyinstr(8)); } ERROR { printf("E %d %x", arg4, arg5); }', "E 1 8"),
    ('BEGIN { x = (1, 2, 3); printf("%d", x); }', "3"),
    ('BEGIN { printf("%d%d%d", 1 ^^ 0, 1 ^^ 1, 5 ^^ 0); }', "101"),
    ('BEGIN { i = -8; printf("%d %d", i >> 1, -8 >> 1); }', "-4 -4"),
    ('BEGIN { printf("%s %s", stringof("ab"), stringof(`version)); }', "ab Scene 1.0"),
    ('BEGIN { f = (int (*)(int))0x10; printf("%p %d", f, sizeof (f)); }', "10 8"),
    ('BEGIN { i = 5; printf("%d %d %d", i++, ++i, i--); }', "5 7 7"),
    ('int *p; BEGIN { p = (int *)0x100; printf("%p %d", p + 2, (p + 3) - p); }', "108 3"),
    ('char c; BEGIN { c = 100; c += 100; printf("%d", c); }', "-56"),
    ('uint32_t u; BEGIN { u = 0; u -= 1; printf("%u", u); }', "4294967295"),
    ('BEGIN { @ = avg(1); @ = avg(2); printa("%@d", @); }', "1"),
    ('BEGIN { @ = stddev(2); @ = stddev(4); printa("%@d", @); }', "1"),
    ('BEGIN { if (1 == 2) { printf("a"); } else if (3 == 3) { printf("b"); } else printf("c"); }', "b"),
    ('BEGIN { printf("%s", json("{\\"a\\":[1,{\\"b\\":\\"c\\"}]}", "a[1].b")); }', "c"),
    ('BEGIN { p = (uint32_t *)alloca(4); *p = 0x0100007f; printf("%s", inet_ntoa(p)); }', "127.0.0.1"),
    ('BEGIN { printf("%s", strjoin("a", strjoin("b", "c"))); }', "abc"),
    ('inline uint8_t B = 300; BEGIN { printf("%d %d", B, sizeof (B)); }', "300 4"),
    ('int x; inline uint8_t T = x; BEGIN { x = 300; printf("%d %d", T, sizeof (T)); }', "44 1"),
    ('BEGIN { x = 0; y = 1 / x; } ERROR { printf("E %d %d", arg4, arg2); }', "E 4 2"),
    ('BEGIN /(1 / (pid - pid))/ { } ERROR { printf("E %d %d", arg4, arg2); }', "E 4 0"),
    (
        (
            'BEGIN { @a["x"] = sum(100); normalize(@a, 10); printa("%s %@d|", @a); denormalize(@a); '
            'printa("%s %@d|", @a); clear(@a); printa("%s %@d", @a); }'
        ),
        "x 10|x 100|x 0",
    ),
    ("BEGIN { printf(\"%d %d %d %d\", 'a', '\\n', '\\0', '\\x41'); }", "97 10 0 65"),
    ('BEGIN { printf("%d %d %d", 0x1F, 017, 10); }', "31 15 10"),
    ('BEGIN { printf("%d %d %d %d", sizeof (1), sizeof (1L), sizeof (1ULL), sizeof (1u)); }', "4 8 8 4"),
    ('BEGIN { printf("%d %d", sizeof (4294967296), sizeof (0xffffffff)); }', "8 4"),
    ('BEGIN { printf("%u", 18446744073709551615u); }', "18446744073709551615"),
    ('BEGIN { x = 2; printf("%d", x == 1 ? 10 : x == 2 ? 20 : 30); }', "20"),
    ('BEGIN { x = (y = 3, y + 1); printf("%d %d", x, y); }', "4 3"),
    ("BEGIN { printf(\"%d %d %d %d\", sizeof (char), sizeof (int *), sizeof (string), sizeof ('a')); }", "1 8 256 4"),
    ('BEGIN { printf("%d %d", (char)200, (unsigned char)-1); }', "-56 255"),
    ('BEGIN { printf("%d", (int)4294967297); }', "1"),
    ('enum c { R, G = 7, B }; BEGIN { printf("%d %d %d", R, G, B); this->x = (enum c)7; trace(this->x); }', "0 7 87"),
    (
        (
            "struct in { int a; struct { int b; int c; } n; }; struct in v; BEGIN { v.a = 1; "
            'v.n.b = 2; v.n.c = 3; printf("%d %d %d %d", v.a, v.n.b, v.n.c, sizeof (v.n)); }'
        ),
        "1 2 3 8",
    ),
    ('typedef struct q { int z[3]; } q_t; q_t w; BEGIN { w.z[2] = 9; printf("%d %d", w.z[2], sizeof (q_t)); }', "9 12"),
    ('typedef int (*fn_t)(int, char *); BEGIN { printf("%d", sizeof (fn_t)); }', "8"),
    ('int arr[4]; BEGIN { arr[0] = 5; arr[3] = 7; printf("%d %d %d", arr[0], arr[3], sizeof (arr)); }', "5 7 16"),
    ('BEGIN { self->x = 1; self->x = 0; printf("%d", self->x); }', "0"),
    (
        'BEGIN { @a["x", 1] = count(); @a["y", 2] = count(); @a["y", 2] = count(); printa("%s-%d:%@d ", @a); }',
        "x-1:1 y-2:2 ",
    ),
    (
        (
            'BEGIN { @a["b"] = sum(1); @a["a"] = sum(2); setopt("aggsortrev"); printa("%s%@d ", '
            '@a); setopt("aggsortrev", "unset"); setopt("aggsortkey"); printa("%s%@d ", @a); }'
        ),
        "a2 b1 a2 b1 ",
    ),
    (
        (
            "BEGIN { @a[1,5] = sum(1); @a[2,4] = sum(1); @b[1,5] = sum(9); @b[2,4] = sum(3); "
            'setopt("aggsortpos", "1"); printa("%d %d %@d %@d|", @a, @b); setopt("aggsortkey"); '
            'setopt("aggsortkeypos","1"); printa("%d %d %@d %@d|", @a, @b); }'
        ),
        "2 4 1 3|1 5 1 9|2 4 1 3|1 5 1 9|",
    ),
    ('BEGIN { p = alloca(8); bcopy(`version, p, 5); printf("%s", stringof(p)); }', "Scene"),
    ('BEGIN { p = alloca(1 << 30); } ERROR { printf("E%d", arg4); }', "E5"),
    ('BEGIN { printf("[%s]", strjoin("", "")); }', "[]"),
    ('BEGIN { printf("[%s][%s]", strstr("hello", "l"), strstr("abc", "") ); }', "[llo][abc]"),
    ('BEGIN { printf("[%s]", strchr("hello", \'l\')); printf("[%s]", strrchr("hello", \'l\')); }', "[llo][lo]"),
    (
        (
            'BEGIN { printf("[%s][%s][%s]", strtok("/a//b/", "/"), strtok(NULL, "/"), '
            'strtok(NULL, "/") == NULL ? "nil" : "?"); }'
        ),
        "[a][b][nil]",
    ),
    (
        (
            'BEGIN { printf("[%s][%s][%s][%s]", substr("hello",2), substr("hello",-2,1), '
            'substr("hello",1,-1), substr("hello",0,99)); }'
        ),
        "[llo][l][ell][hello]",
    ),
    ('BEGIN { printf("%s %s", toupper("aBc1"), tolower("aBC1")); }', "ABC1 abc1"),
    (
        (
            'BEGIN { printf("[%s][%s][%s][%s][%s]", basename("/a/b/"), basename("/"), '
            'basename(""), dirname("/a/b/"), dirname("a")); }'
        ),
        "[b][/][.][/a][.]",
    ),
    (
        'BEGIN { printf("%d %d %d %d", strtoll("12"), strtoll("zz", 36), strtoll("-0x10", 16), strtoll("9", 8)); }',
        "12 1295 -16 0",
    ),
    (
        'BEGIN { printf("%x %x %x %x", htons(0x1234), htonl(0x12345678), htonll(0x1122334455667788), ntohs(0x0102)); }',
        "3412 78563412 8877665544332211 201",
    ),
    ('BEGIN { p = (in_addr_t *)alloca(4); *p = 0x0100007f; printf("%s", inet_ntop(2, p)); }', "127.0.0.1"),
    ('BEGIN { p = (uint8_t *)alloca(16); p[15] = 1; printf("%s", inet_ntop(28, p)); }', "::1"),
    ('BEGIN { printf("%d", rand() != rand()); }', "1"),
    (
        (
            'BEGIN { self->s = speculation(); } BEGIN { speculate(self->s); printf("a"); } BEGIN '
            '{ discard(self->s); printf("b"); }'
        ),
        "b",
    ),
    (
        (
            'BEGIN { self->s = speculation(); } BEGIN { speculate(self->s); printf("a"); } BEGIN '
            '{ commit(self->s); } BEGIN { printf("c"); }'
        ),
        "ac",
    ),
    ('BEGIN { speculate(0); printf("z"); }', ""),
    ('BEGIN /x = 1/ { printf("p"); }', "p"),
    ("BEGIN { printf(\"%c%c|%5c|%%\", 65, 'b', 'c'); }", "Ab|    c|%"),
    ('BEGIN { printf("\\x41\\101\\t|\\"\\\\"); }', 'AA\t|"\\'),
    ("BEGIN { printf(\"%x %x\", 'ab', 'abcd'); }", "6162 61626364"),
    ('BEGIN { printf("%d %d", sizeof (int [3]), sizeof sizeof 1); }', "12 8"),
    ('BEGIN { @a = min(3); @b = max(9); printa("%@d %@x %@u", @a, @b, @a); }', "3 9 3"),
    ('BEGIN { printf("%s", strstr("abc", "x")); } ERROR { printf("E%d", arg4); }', "E1"),
    (
        'BEGIN { printf("%d %d %d", index("abcabc", "bc", 2), rindex("abcabc", "a", -1), index("abc", "", 5)); }',
        "4 -1 3",
    ),
    ('BEGIN { printf("[%s][%s]", cleanpath("/a/../b/./c//d"), cleanpath("/..")); }', "[/b/c/d][/]"),
    (
        'BEGIN { printf("[%s][%s][%s]", lltostr(-255, 16), lltostr(5, 2), lltostr(35, 36)); }',
        "[0xffffffffffffff01][101][z]",
    ),
    ('BEGIN { printf("%s", lltostr(5, 37)); } ERROR { printf("E%d", arg4); }', "E3"),
    ('BEGIN { p = alloca(16); printf("%s", inet_ntop(7, p)); } ERROR { printf("E%d", arg4); }', "E3"),
    ('BEGIN { p = alloca(8); copyinto(0x405000, 8, p); printf("%s", stringof(p)); }', "/etc/mot"),
    ('BEGIN { x = *(int *)3; } ERROR { printf("%d %d %d", arg2, arg4, arg5); }', "1 1 3"),
]


@pytest.mark.parametrize(("program", "text"), PROGRAMS)
def test_a_program_prints_what_the_guide_says(program, text):
    output, _error, status = run_scene(["-q", "-n", f"{program} BEGIN {{ exit(0); }}"])
    assert (output.strip("\n"), status) == (text, 0)


# Programs that libdtrace refuses, with the tags of its errors.
REFUSED = [
    ("/* a /* b */ BEGIN { }", "D_SYNTAX"),
    ('BEGIN { printf("a\\\nb"); }', "D_STR_NL"),
    ("BEGIN { x = 'abcdefghi'; }", "D_CHR_OFLOW"),
    ("BEGIN { x = ''; }", "D_CHR_NULL"),
    ("BEGIN { x = 089; }", "D_INT_DIGIT"),
    ("BEGIN { x = 18446744073709551616; }", "D_INT_OFLOW"),
    ("BEGIN { x = 18446744073709551615; }", "D_INT_OFLOW"),
    ("BEGIN { x = 1uu; }", "D_SYNTAX"),
    ("BEGIN { x = 1.5; }", "D_SYNTAX"),
    ('BEGIN { x["a", 1] = 1; x["a"] = 2; }', "D_PROTO_LEN"),
    ('BEGIN { x["a"] = 1; x[1] = 2; }', "D_PROTO_ARG"),
    ("BEGIN { @a = count(); @a = sum(1); }", "D_AGG_REDEF"),
    ("BEGIN { @a = count(1); }", "D_PROTO_LEN"),
    ('BEGIN { @a = sum("x"); }', "D_AGG_SCALAR"),
    ("BEGIN { count(); }", "D_CG_EXPR"),
    ('BEGIN { printa("%@d"); }', "D_PRINTA_PROTO"),
    ("BEGIN { @a = lquantize(1, 10, 0); }", "D_LQUANT_MISMATCH"),
    ("BEGIN { @a = llquantize(1, 10, 0, 3, 7); }", "D_LLQUANT_FACTORNSTEPS"),
    ("BEGIN { stack(0); }", "D_STACK_SIZE"),
    ("BEGIN { ustack(1, 2, 3); }", "D_USTACK_PROTO"),
    ("BEGIN { speculate(1); exit(0); }", "D_EXIT_SPEC"),
    ("BEGIN { speculate(1); @a = count(); }", "D_AGG_SPEC"),
    ("BEGIN { commit(1); commit(2); }", "D_COMM_COMM"),
    ('BEGIN { commit(1); printf("x"); }', "D_DREC_COMM"),
    ('BEGIN { printf("x"); speculate(1); }', "D_SPEC_DREC"),
    ('BEGIN /"abc"/ { }', "D_PRED_SCALAR"),
    ('BEGIN { printf("%d"); }', "D_PRINTF_ARG_PROTO"),
    ('BEGIN { printf("%d", 1, 2); }', "D_PRINTF_ARG_EXTRA"),
    ('BEGIN { printf("%q", 1); }', "D_SYNTAX"),
    ("BEGIN { x = $nosuch; }", "D_MACRO_UNDEF"),
]


@pytest.mark.parametrize(("program", "tag"), REFUSED)
def test_a_program_is_refused_with_libdtraces_tag(program, tag):
    _output, error, status = run_scene(["-x", "errtags", "-n", program])
    assert (f"[{tag}]" in error, status) == (True, 1)


# Command lines: the arguments, what is printed, and how the message ends.
COMMANDS = [
    (["-qn", 'BEGIN { printf("%d %s", $1, $$2); exit(0); }', "5", "six"], "5 six", ""),
    (["-q", "-x", "defaultargs", "-n", 'BEGIN { printf("[%d][%s]", $1, $$2); exit(0); }'], "[0][]", ""),
    (["-qn", 'BEGIN { printf("a"); }', "-n", 'BEGIN { printf("b"); exit(0); }'], "ab", ""),
    (["-q", "-i", '1 /pid >= 0/ { printf("i"); exit(0); }'], "i", ""),
    (["-q", "-f", 'sys_read { printf("%s", probename); exit(0); }'], "entry", ""),
    (["-q", "-P", 'dtrace { printf("%s;", probename); exit(0); }'], "BEGIN;END;", ""),
    (["-q", "-n", 'd?rac[a-e]:::BEG* { printf("g"); exit(0); }'], "g", ""),
    (["-q", "-n", 'dtrace:::BEGI[!X] { printf("g"); exit(0); }'], "g", ""),
    (["-q", "-x", "strsize=4", "-n", 'BEGIN { printf("%s", "abcdefgh"); exit(0); }'], "abcd", ""),
    (["-q", "-32", "-n", 'BEGIN { printf("%d", sizeof (long)); exit(0); }'], "4", ""),
    (
        [
            "-q",
            "-x",
            "nspec=2",
            "-n",
            'BEGIN { printf("%d%d%d", speculation(), speculation(), speculation()); exit(0); }',
        ],
        "120",
        "1 failed speculation (no speculative buffer available)",
    ),
    (["-x", "bufsize=abc", "-n", "BEGIN"], "", "failed to set -x bufsize: Invalid value for specified option"),
    (["-x", "nosuch=1", "-n", "BEGIN"], "", "failed to set -x nosuch: Invalid option name"),
    (["-x", "strsize=0", "-n", "BEGIN"], "", "failed to set -x strsize: Invalid value for specified option"),
    (["-b", "4q", "-n", "BEGIN"], "", "failed to set -b 4q: Invalid value for specified option"),
    (["-q", "-b", "1", "-n", "BEGIN { trace(1); }"], "", "Enabling exceeds size of buffer"),
    (["-qn", "BEGIN { raise(9); }"], "", "could not enable tracing: Destructive actions not allowed"),
    (["-G"], "", "-G requires one or more scripts or enabling options"),
    (["-h"], "", "-h requires one or more scripts or enabling options"),
    (["-A", "-l", "-n", "BEGIN"], "", "only one of the [-AGhlV] options can be specified at a time"),
]


@pytest.mark.parametrize(("arguments", "text", "message"), COMMANDS)
def test_a_command_line_does_what_the_manual_says(arguments, text, message):
    output, error, _status = run_scene(arguments)
    assert (output.strip("\n"), error.rstrip("\n").endswith(message)) == (text, True)
    assert bool(error) == bool(message)
