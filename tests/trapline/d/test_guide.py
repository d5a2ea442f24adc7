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
            "B"
            "E"
            "G"
            "I"
            "N"
            " "
            "{"
            " "
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
            "B"
            "E"
            "G"
            "I"
            "N"
            " "
            "{"
            " "
            "p"
            "r"
            "i"
            "n"
            "t"
            "f"
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
]


@pytest.mark.parametrize(("program", "text"), PROGRAMS)
def test_a_program_prints_what_the_guide_says(program, text):
    output, _error, status = run_scene(["-q", "-n", f"{program} BEGIN {{ exit(0); }}"])
    assert (output.strip("\n"), status) == (text, 0)
