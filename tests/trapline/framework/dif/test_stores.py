"""Where a program may store: what dtrace_canstore() allows (FreeBSD dtrace.c), and nothing else.

That is scratch space up to what was handed out (dtrace_inscratch()), the storage of a global or of
a clause-local by reference with the eight bytes before it (dtrace_canstore_statvar()), and the data
of a dynamic variable up to the end of its chunk.
"""

from __future__ import annotations

import pytest

from tests.trapline.d.reference.scene import run_scene
from trapline.framework.base import engines
from trapline.framework.base.engines import ProgramEngine

DECLARED = (
    "int a[5]; this int c[5]; self int t[5]; struct s { int n; char text[6]; short h[3]; };struct s g; this struct s l;"
)

STORED = [
    "this->i = 4; a[this->i] = 1",
    "this->i = 0; a[this->i] = 1",
    "this->i = -1; a[this->i] = 1",  # in the eight bytes before the data
    "this->i = 4; this->c[this->i] = 1",
    "this->i = 0x7fffffffffffffff; a[this->i] = 1",  # times 4 that is -4
    "this->i = (int64_t)0x8000000000000000; a[this->i] = 1",  # and that is 0
    "this->i = 2; g.h[this->i] = 1",
    "this->i = 3; g.text[this->i] = 1",
    "this->i = 8; g.text[this->i] = 1",  # another member
    "this->i = 2; this->l.h[this->i] = 1",
    "this->p = (char *)alloca(4); this->p[3] = 1",
    "this->p = (int *)alloca(8); this->p[1] = 1",
    "this->q = alloca(4); this->p = (char *)alloca(4); this->p[-8] = 1",  # what was handed out before
    "this->p = (struct s *)alloca(sizeof (struct s)); this->p->h[2] = 1",
    "this->p = (char *)alloca(8); *(this->p + 7) = 1",
    "this->p = (char *)alloca(8); bcopy(`version, this->p, 8)",
]

REFUSED = [
    "this->i = 5; a[this->i] = 1",
    "this->i = 8; a[this->i] = 1",
    "this->i = -3; a[this->i] = 1",
    "this->i = 1 << 20; a[this->i] = 1",
    "this->i = -(1 << 20); a[this->i] = 1",
    "this->i = 0x1fffffffffffffff; a[this->i] = 1",
    "this->i = (int64_t)0x8000000000000002; a[this->i * 3] = 1",
    "this->i = 5; this->c[this->i] = 1",
    "this->i = 100; this->c[this->i] = 1",
    "self->t[0] = 1",  # a thread-local array has no storage, as nothing can be assigned to it
    "this->i = -6; self->t[this->i] = 1",
    "this->i = 9; g.h[this->i] = 1",
    "this->i = 12; g.text[this->i] = 1",
    "this->p = (char *)alloca(4); this->p[4] = 1",
    "this->p = (char *)alloca(4); this->p[100] = 1",
    "this->p = (char *)alloca(4); this->p[-9] = 1",
    "this->p = (char *)alloca(4); *(this->p + 1000000) = 1",
    "this->p = (int *)alloca(4); this->p[1] = 1",
    "this->p = (int64_t *)alloca(4); *this->p = 1",  # half of it was handed out
    "this->p = (char *)alloca(0); *this->p = 1",
    "this->p = (char *)alloca(8); *(this->p + -(int64_t)this->p - 1) = 1",
    "this->p = (struct s *)alloca(4); this->p->h[2] = 1",
    "this->p = (char *)alloca(4); bcopy(`version, this->p, 8)",
    "this->p = (char *)alloca(8); bcopy(`version, this->p + 4, 8)",
]


@pytest.mark.parametrize("engine", ProgramEngine)
@pytest.mark.parametrize(
    ("statements", "allowed"), [*((one, True) for one in STORED), *((one, False) for one in REFUSED)]
)
def test_a_store_is_allowed_where_libdtraces_kernel_allows_it(statements, allowed, engine, monkeypatch):
    monkeypatch.setenv(engines.VARIABLE, engine)
    clauses = (
        f'BEGIN {{ {statements}; printf("stored\\n"); exit(0); }} ERROR {{ printf("fault %d\\n", arg4); exit(0); }}'
    )
    output, error, status = run_scene(["-q", "-n", f"{DECLARED} {clauses}"])
    assert output.splitlines()[0] == ("stored" if allowed else "fault 1"), error
    assert (status, "invalid address" in error) == (0, not allowed)
