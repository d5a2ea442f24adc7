"""The cache on disk: it returns exactly the bytes that were stored."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from emu.support import disk_cache
from emu.support.disk_cache import cached, folder


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path):
    monkeypatch.setenv("TRAPLINE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def never():
    raise AssertionError("made again")


def test_what_was_made_is_not_made_again():
    assert cached("kind", b"source", lambda: b"result") == b"result"
    assert cached("kind", b"source", never) == b"result"


def test_another_source_or_kind_is_another_result():
    cached("kind", b"source", lambda: b"result")
    assert cached("kind", b"other", lambda: b"2") == b"2"
    assert cached("other", b"source", lambda: b"3") == b"3"


@pytest.mark.parametrize("damage", [b"", b"x", b"\0" * 40])
def test_a_damaged_file_is_made_again(place, damage):
    cached("kind", b"source", lambda: b"result")
    (file,) = place.iterdir()
    file.write_bytes(damage)
    assert cached("kind", b"source", lambda: b"result") == b"result"
    assert cached("kind", b"source", never) == b"result"


def test_a_flipped_bit_is_noticed(place):
    cached("kind", b"source", lambda: b"result")
    (file,) = place.iterdir()
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    assert cached("kind", b"source", lambda: b"result") == b"result"


def test_nothing_is_kept_where_the_variable_is_empty(monkeypatch):
    monkeypatch.setenv("TRAPLINE_CACHE", "")
    assert folder() is None
    assert [cached("kind", b"source", lambda: b"1"), cached("kind", b"source", lambda: b"2")] == [b"1", b"2"]


def test_a_folder_that_cannot_be_made_or_is_another_users_is_not_used(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRAPLINE_CACHE", str(tmp_path / "file" / "cache"))
    assert folder() is None
    assert cached("kind", b"source", lambda: b"1") == b"1"
    monkeypatch.setenv("TRAPLINE_CACHE", str(tmp_path / "mine"))
    monkeypatch.setattr(disk_cache.os, "geteuid", lambda: os.getuid() + 1)
    assert folder() is None


@pytest.mark.parametrize(
    ("plant", "why"),
    [
        (lambda path: path.chmod(0o777), "chmod go-w"),
        (lambda path: path.chmod(0o770), "chmod go-w"),
        (lambda path: path.rename(path.with_name("far")).parent and path.symlink_to("far"), "is a link"),
    ],
)
def test_a_folder_that_others_can_write_to_is_not_used(place, plant, why):
    cached("kind", b"source", lambda: b"planted")
    assert disk_cache.why_none() == ""
    plant(place)
    assert why in disk_cache.why_none()
    assert cached("kind", b"source", lambda: b"mine") == b"mine"


def as_link(file, _monkeypatch):
    file.symlink_to(file.rename(file.parent.parent / "far"))


def as_fifo(file, _monkeypatch):
    file.unlink()
    os.mkfifo(file)


def as_folder(file, _monkeypatch):
    file.unlink()
    file.mkdir()


def as_writable(file, _monkeypatch):
    file.chmod(0o666)


def as_another_users(file, monkeypatch):
    """With root's rights the file gets another owner; without, its owner is another one than it seems."""
    if os.geteuid() == 0:
        os.chown(file, 12345, 12345)
    else:
        real = os.fstat
        monkeypatch.setattr(
            disk_cache.os, "fstat", lambda number: os.stat_result((*real(number)[:4], 12345, *real(number)[5:]))
        )


@pytest.mark.parametrize("plant", [as_link, as_fifo, as_folder, as_writable, as_another_users])
def test_a_file_that_another_user_may_have_planted_is_made_again(place, plant, monkeypatch):
    cached("kind", b"source", lambda: b"planted")
    (file,) = place.iterdir()
    plant(file, monkeypatch)
    assert cached("kind", b"source", lambda: b"mine") == b"mine"


def test_what_is_made_is_this_users_alone(place):
    old = os.umask(0)
    try:
        cached("kind", b"source", lambda: b"result")
    finally:
        os.umask(old)
    (file,) = place.iterdir()
    assert (place.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)


def test_the_folder_is_where_the_desktop_wants_caches(monkeypatch, tmp_path):
    monkeypatch.delenv("TRAPLINE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert folder() == tmp_path / "xdg" / "trapline"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert folder() == tmp_path / "home" / ".cache" / "trapline"


def test_processes_share_it(place):
    program = (
        "from emu.support.disk_cache import cached; print(len(cached('kind', b'source', lambda: b'x' * 1_000_000)))"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=Path(__file__).parents[3])
        for _ in range(4)
    ]
    assert [child.communicate()[0] for child in children] == [b"1000000\n"] * 4
    assert [file.name.split("-")[0] for file in place.iterdir()] == ["kind"]


def test_what_was_not_used_for_the_longest_time_is_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAPLINE_CACHE", str(tmp_path))
    monkeypatch.setattr(disk_cache, "_MOST_FILES", 3)
    monkeypatch.setattr(disk_cache, "_MOST_BYTES", 10_000)
    other, written = tmp_path / "notes.txt", tmp_path / ".trapline-old"
    other.write_text("not of the cache")
    written.write_text("of a process that has ended")
    os.utime(written, (0, 0))
    made = []

    def get(text, size=10):
        def make():
            made.append(text)
            return text * size

        return disk_cache.cached("kind", text, make)

    for age, text in enumerate((b"a", b"b", b"c")):
        get(text)
        for path in tmp_path.glob("kind-*"):
            if path.read_bytes().endswith(text):
                os.utime(path, (1000 + age, 1000 + age))
    get(b"a")  # which notes that it was used
    get(b"d")
    assert made == [b"a", b"b", b"c", b"d"]
    for text in (b"a", b"c", b"d"):
        assert get(text) == text * 10
    assert len(made) == 4
    get(b"b")
    assert made[4:] == [b"b"]
    get(b"e", 9_968)
    assert len(list(tmp_path.glob("kind-*"))) == 1
    assert get(b"e", 9_968) == b"e" * 9_968
    assert other.exists()
    assert not written.exists()
