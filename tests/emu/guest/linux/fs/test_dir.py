"""Directories from the host have the number of links that follows from their subdirectories."""

from emu.guest.linux.fs.dir import Directory


def test_a_directory_of_the_host_counts_its_subdirectories_and_those_that_go(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").write_text("")
    directory = Directory(host=tmp_path)
    assert directory.links == 5
    for name in ("a", "b", "c"):
        directory.remove(name)
    assert directory.links == 2
