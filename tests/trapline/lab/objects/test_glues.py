"""Glues of the user's own, and what is said of wrong ones."""

import pytest

from emu.guest.kernel.boot.images import built
from emu.isa import ISAS
from trapline.lab.objects.check import check_objects
from trapline.lab.objects.glue import Glue, extern
from trapline.lab.objects.glues import GlueError, find
from trapline.lab.objects.prototypes import CType, PrototypeError, prototype
from trapline.lab.objects.request import Request, RequestError

_EVERY_ISA = pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)


class Links(Glue):
    """A glue for testbins/objects/links.c."""

    entries = ("compute",)

    @extern("unsigned long length(const char *text)")
    def length(self, text):
        """Return the length."""
        return len(text)

    def check(self):
        """Expect what the C says."""
        for x, wanted in ((0, 87), (2, ord("b")), (4, 2)):
            found = self.code.call("compute", x, 5)
            if found & 0xFFFF_FFFF != wanted:
                yield f"compute({x}, 5) is {found}, not {wanted}"


def _paths(isa):
    return [built(isa) / "objects" / f"{name}.o" for name in ("links", "links_other")]


@_EVERY_ISA
def test_a_glue_of_the_users_own_calls_any_code(isa):
    report = check_objects(_paths(isa), Links, Request())
    assert report.same
    assert {one.file for one in report.coverage} == {"links.c", "links_other.c"}


@_EVERY_ISA
def test_what_its_check_yields_is_a_finding(isa):
    class Wrong(Links):
        @extern("unsigned long length(const char *text)")
        def length(self, text):
            return len(text) + 1

    report = check_objects(_paths(isa), Wrong, Request())
    assert [one.what for one in report.failures] == ["compute(4, 5) is 3, not 2"]
    assert not report.same


def test_a_glue_without_a_check_says_so():
    class Silent(Links):
        check = Glue.check

    with pytest.raises(RequestError, match="Silent has no method 'check'"):
        check_objects(_paths(ISAS["x86_64"]), Silent, Request())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nothing_like_this", "does not load: ModuleNotFoundError"),
        ("x = (", "does not load: SyntaxError"),
        ("class Mine: pass", "'Mine' is not a class derived from"),
        ("from trapline.lab.objects.glue import extern\nextern('no prototype')", "not a C prototype"),
    ],
)
def test_a_glue_file_that_does_not_load_is_one_line(tmp_path, text, message):
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(GlueError, match=message) as caught:
        find(f"{path}:Mine")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["fbd", "mine.py", "nowhere.py:Glue"])
def test_unknown_glues_are_one_line(name):
    with pytest.raises(GlueError):
        find(name)


def test_prototypes_give_widths_and_signs():
    found = prototype("int f(unsigned char a, const char *b, uint64_t c, struct s *d, long, size_t n, ...)")
    assert found.name == "f"
    assert found.result == CType(4, signed=True)
    assert found.parameters == (
        CType(1, signed=False),
        CType(0, signed=False, text=True),
        CType(8, signed=False),
        CType(0, signed=False),
        CType(0, signed=True),
        CType(0, signed=False),
    )
    assert prototype("void g(void)").result is None
    assert prototype("void g(void)").parameters == ()
    assert CType(4, signed=True).narrowed(0xFFFF_FFFF_FFFF_FFFE, 8) == -2
    with pytest.raises(PrototypeError):
        prototype("int x")
