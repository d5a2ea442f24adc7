"""Programs in the manner of the DTrace guide's chapters, each with the text that it prints."""

from __future__ import annotations

import pytest

from tests.trapline.d.reference.scene import run_scene

PROGRAMS = [
    (
        'BEGIN { printf("[%-6d|%06d|%+d|% d|%x|%#o|%5.3d]", 42, 42, 42, 42, 255, 8, 7); exit(0); }',
        "[42    |000042|+42| 42|ff|010|  007]",
    ),
    ('BEGIN { printf("[%*d|%-*d|%.*s]", 6, 42, 6, 42, 2, "abc"); exit(0); }', "[    42|42    |ab]"),
    ('BEGIN { c = (char)-1; printf("%d %u %x", c, c, c); exit(0); }', "-1 255 ff"),
    ('BEGIN { x = 1; printf("%s", x ? "yes" : "no"); exit(0); }', "yes"),
    ('BEGIN { a[1, "x", probename] = 7; printf("%d %d", a[1, "x", "BEGIN"], a[2, "x", "BEGIN"]); exit(0); }', "7 0"),
    ('self int q; BEGIN { self->q = 3; self->z[1] = "k"; printf("%d %s", self->q, self->z[1]); exit(0); }', "3 k"),
    ('this int t; BEGIN { this->t = 5; } BEGIN { printf("%d", this->t); exit(0); }', "5"),
    (
        "struct s { char a; int b; char c[3]; long d; }; BEGIN { "
        'printf("%d %d %d %d", sizeof (struct s), offsetof(struct s, d), sizeof (int *), sizeof ("abc")); exit(0); }',
        "24 16 8 4",
    ),
    ('enum e { A, B = 5, C }; BEGIN { printf("%d %d", C, sizeof (enum e)); exit(0); }', "6 4"),
    (
        'union u { int i; char c[4]; }; union u g; BEGIN { g.i = 0x01020304; printf("%d %d", g.c[0], g.c[3]); exit(0); }',
        "4 1",
    ),
    (
        'struct b { int x:3; unsigned y:5; }; struct b g; BEGIN { g.x = 3; g.y = 31; printf("%d %d", g.x, g.y); exit(0); }',
        "3 31",
    ),
    ('struct b { int x:3; }; struct b g; BEGIN { g.x = 7; printf("%d", g.x); exit(0); }', "-1"),
    (
        'BEGIN { printf("%s %s %s", strtok("a:b", ":"), strtok(NULL, ":"), strtok(NULL, ":") == NULL ? "end" : "more"); exit(0); }',
        "a b end",
    ),
    (
        'BEGIN { printf("[%s][%s][%s]", substr("hello", 1, 3), substr("hello", -3), substr("hello", 9)); exit(0); }',
        "[ell][llo][]",
    ),
    (
        'BEGIN { printf("%d %d %d", index("abcabc", "c"), rindex("abcabc", "c"), index("abc", "z")); exit(0); }',
        "2 5 -1",
    ),
    ('BEGIN { printf("%s %s %s", lltostr(-5), lltostr(255, 16), lltostr(8, 8)); exit(0); }', "-5 0xff 010"),
    ('BEGIN { printf("%d %d %d", strtoll("  -12x"), strtoll("0x1f", 16), strtoll("777", 8)); exit(0); }', "-12 31 511"),
    ('BEGIN { trace(copyinstr(8)); } ERROR { printf("E %d %x", arg4, arg5); exit(0); }', "E 1 8"),
    ('BEGIN { x = (1, 2, 3); printf("%d", x); exit(0); }', "3"),
    ('BEGIN { printf("%d%d%d", 1 ^^ 0, 1 ^^ 1, 5 ^^ 0); exit(0); }', "101"),
    ('BEGIN { i = -8; printf("%d %d", i >> 1, -8 >> 1); exit(0); }', "-4 -4"),
    ('BEGIN { printf("%s %s", stringof("ab"), stringof(`version)); exit(0); }', "ab Scene 1.0"),
    ('BEGIN { f = (int (*)(int))0x10; printf("%p %d", f, sizeof (f)); exit(0); }', "10 8"),
    ('BEGIN { i = 5; printf("%d %d %d", i++, ++i, i--); exit(0); }', "5 7 7"),
    ('int *p; BEGIN { p = (int *)0x100; printf("%p %d", p + 2, (p + 3) - p); exit(0); }', "108 3"),
    ('char c; BEGIN { c = 100; c += 100; printf("%d", c); exit(0); }', "-56"),
    ('uint32_t u; BEGIN { u = 0; u -= 1; printf("%u", u); exit(0); }', "4294967295"),
    ('BEGIN { @ = avg(1); @ = avg(2); printa("%@d", @); exit(0); }', "1"),
    ('BEGIN { @ = stddev(2); @ = stddev(4); printa("%@d", @); exit(0); }', "1"),
    ('BEGIN { if (1 == 2) { printf("a"); } else if (3 == 3) { printf("b"); } else printf("c"); exit(0); }', "b"),
    ('BEGIN { printf("%s", json("{\\"a\\":[1,{\\"b\\":\\"c\\"}]}", "a[1].b")); exit(0); }', "c"),
    ('BEGIN { p = (uint32_t *)alloca(4); *p = 0x0100007f; printf("%s", inet_ntoa(p)); exit(0); }', "127.0.0.1"),
    ('BEGIN { printf("%s", strjoin("a", strjoin("b", "c"))); exit(0); }', "abc"),
    ('inline uint8_t B = 300; BEGIN { printf("%d %d", B, sizeof (B)); exit(0); }', "300 4"),
    ('int x; inline uint8_t T = x; BEGIN { x = 300; printf("%d %d", T, sizeof (T)); exit(0); }', "44 1"),
    ('BEGIN { x = 0; y = 1 / x; } ERROR { printf("E %d %d", arg4, arg2); exit(0); }', "E 4 2"),
    ('BEGIN /(1 / (pid - pid))/ { } ERROR { printf("E %d %d", arg4, arg2); exit(0); }', "E 4 0"),
    (
        'BEGIN { @a["x"] = sum(100); normalize(@a, 10); printa("%s %@d|", @a); denormalize(@a); printa("%s %@d|", @a); clear(@a); printa("%s %@d", @a); exit(0); }',
        "x 10|x 100|x 0",
    ),
]


@pytest.mark.parametrize(("program", "text"), PROGRAMS)
def test_a_program_prints_what_the_guide_says(program, text):
    output, _error, status = run_scene(["-q", "-n", program])
    assert (output.strip("\n"), status) == (text, 0)
