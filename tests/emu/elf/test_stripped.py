"""Functions of stripped programs."""

import lzma
import shutil
import struct
import subprocess
import zlib

import pytest

from emu.elf import debug_files
from emu.elf.image import Image
from emu.elf.stripped import marked, selected
from emu.guest.kernel.boot import images
from emu.isa import ISAS
from tests.emu.guest.linux.support import run
from tests.support.command import run_trapline
from trapline.d.errors import CompileError

_SYMTAB, _NULL, _PROGBITS, _NOTE = 2, 0, 1, 7
IDENTIFIER = bytes(range(20))
BUILD_ID = struct.pack("<III", 4, len(IDENTIFIER), 3) + b"GNU\0" + IDENTIFIER


def stripped(content, extra):
    """Return an ELF file without its symbol table, with more sections: name -> (type, content)."""
    wide = content[4] == 2
    header = struct.Struct("<IIQQQQIIQQ" if wide else "<IIIIIIIIII")
    place = struct.unpack_from("<Q" if wide else "<I", content, 40 if wide else 32)[0]
    count, names = struct.unpack_from("<HH", content, 60 if wide else 48)
    rows = [list(header.unpack_from(content, place + number * header.size)) for number in range(count)]
    strings = content[rows[names][4] : rows[names][4] + rows[names][5]]
    data = bytearray(content)
    for row in rows:
        if row[1] == _SYMTAB:
            row[1] = _NULL
    for name, (kind, text) in extra.items():
        rows.append([len(strings), kind, 0, 0, len(data), len(text), 0, 0, 1, 0])
        strings += name.encode() + b"\0"
        data += text
    rows[names][4:6] = len(data), len(strings)
    data += strings
    struct.pack_into("<Q" if wide else "<I", data, 40 if wide else 32, len(data))
    struct.pack_into("<H", data, 60 if wide else 48, len(rows))
    return bytes(data) + b"".join(header.pack(*row) for row in rows)


def zoo(isa):
    return images.linux(ISAS[isa], "zoo")


@pytest.fixture(autouse=True)
def no_debug_files(tmp_path, monkeypatch):
    monkeypatch.setattr(debug_files, "_folders", [tmp_path / "debug"])


@pytest.mark.parametrize("isa", ISAS)
def test_functions_without_names_are_those_that_have_frames(isa, tmp_path):
    (path := tmp_path / "zoo").write_bytes(stripped(zoo(isa).read_bytes(), {}))
    found, whole = Image(path), Image(zoo(isa))
    assert len(marked(found.functions)) == len(found.functions) > 500
    named = {symbol.value: symbol for symbol in whole.functions}
    for function in found.functions:
        assert function.name == f"eh_frame.{function.value:x}"
    known = [one for one in found.functions if one.value in named]
    assert len(known) > 0.9 * len(found.functions)
    exact = [one for one in known if named[one.value].size == one.size]
    assert len(exact) > 0.9 * len(known)


@pytest.mark.parametrize("isa", ISAS)
def test_a_compressed_symbol_table_names_functions(isa, tmp_path):
    packed = lzma.compress(zoo(isa).read_bytes(), preset=0)
    (path := tmp_path / "zoo").write_bytes(stripped(zoo(isa).read_bytes(), {".gnu_debugdata": (_PROGBITS, packed)}))
    assert Image(path).symbol("main") == Image(zoo(isa)).symbol("main")


@pytest.mark.parametrize("isa", ISAS)
def test_a_debug_file_names_functions(isa, tmp_path):
    (path := tmp_path / "zoo").write_bytes(stripped(zoo(isa).read_bytes(), {".note.gnu.build-id": (_NOTE, BUILD_ID)}))
    assert not Image(path).defines("main")
    folder = tmp_path / "debug" / ".build-id" / "00"
    folder.mkdir(parents=True)
    (folder / f"{IDENTIFIER.hex()[2:]}.debug").write_bytes(zoo(isa).read_bytes())
    assert Image(path).symbol("main") == Image(zoo(isa)).symbol("main")


def link(name, content):
    text = name.encode() + b"\0"
    return text + bytes(-len(text) % 4) + struct.pack("<I", zlib.crc32(content))


@pytest.mark.parametrize("isa", ISAS)
def test_the_file_of_a_debug_link_names_functions(isa, tmp_path, monkeypatch):
    content = zoo(isa).read_bytes()
    (bin_ := tmp_path / "root" / "bin").mkdir(parents=True)
    (path := bin_ / "zoo").write_bytes(stripped(content, {".gnu_debuglink": (_PROGBITS, link("zoo.debug", content))}))
    usual = debug_files.usual_folder(tmp_path / "root")
    monkeypatch.setattr(debug_files, "_folders", [usual])
    assert not Image(path).defines("main")
    for folder in (bin_, bin_ / ".debug", usual / "bin"):
        folder.mkdir(parents=True, exist_ok=True)
        (debug := folder / "zoo.debug").write_bytes(content)
        assert Image(path).symbol("main") == Image(zoo(isa)).symbol("main")
        debug.write_bytes(content + b"another build")
        assert not Image(path).defines("main")
        debug.unlink()


@pytest.mark.parametrize("damaged", [b"", b"zoo", b"\0\0\0\0\0\0\0\0", b"../zoo\0\0abcd", b"zoo\0abc", b"\xff\0abcd"])
def test_a_damaged_debug_link_is_no_file(damaged, tmp_path):
    (path := tmp_path / "zoo").write_bytes(b"")
    assert debug_files.linked_file(damaged, path) is None


@pytest.mark.skipif(shutil.which("objcopy") is None, reason="objcopy (binutils) writes the link")
def test_a_debug_link_of_objcopy(tmp_path):
    path, debug = tmp_path / "zoo", tmp_path / "zoo.debug"
    subprocess.run(["objcopy", "--only-keep-debug", zoo("x86_64"), debug], check=True)
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", zoo("x86_64"), path], check=True)
    assert Image(path).symbol("main").value == Image(zoo("x86_64")).symbol("main").value
    debug.unlink()
    assert not Image(path).defines("main")


@pytest.mark.parametrize("spoiled", [b"", b"\xfd7zXZ\0", b"junk" * 9])
def test_a_damaged_symbol_table_leaves_the_other_names(spoiled, tmp_path):
    content = stripped(zoo("x86_64").read_bytes(), {".gnu_debugdata": (_PROGBITS, spoiled)})
    (path := tmp_path / "zoo").write_bytes(content)
    assert marked(Image(path).functions)


@pytest.mark.parametrize("note", [b"", BUILD_ID[:10], BUILD_ID[:12] + b"XXX\0" + IDENTIFIER, BUILD_ID[:17]])
def test_a_damaged_note_has_no_build_identifier(note):
    identifier = debug_files.build_id(note)
    assert identifier in {"", IDENTIFIER.hex()[:2]}
    assert debug_files.debug_file(identifier) is None


@pytest.mark.parametrize("isa", ISAS)
def test_probes_stand_at_functions_without_names(isa, tmp_path):
    (path := tmp_path / "zoo").write_bytes(stripped(zoo(isa).read_bytes(), {}))
    path.chmod(0o755)
    main = Image(zoo(isa)).symbol("main").value
    result = run_trapline(["dtrace", "-qn", f'pid$target:zoo:eh_frame.{main:x}:entry {{ trace("here"); }}',
                           "-c", f"{path} recursion"])  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "here" in result.stdout
    result = run_trapline(["sites", "--function", f"eh_frame.{main:x}", str(path)])
    assert result.returncode == 0, result.stderr
    assert f"eh_frame.{main:x}" in result.stdout
    assert "named by their addresses in .eh_frame" in result.stderr


def test_a_debug_root_that_is_not_there_is_refused(tmp_path):
    result = run_trapline(["dtrace", "--debug-root", str(tmp_path / "none"), "-n", "BEGIN", "-c", str(zoo("x86_64"))])
    assert result.returncode == 1
    assert "--debug-root" in result.stderr


@pytest.mark.parametrize("isa", ISAS)
def test_a_glob_does_not_match_a_name_that_was_made_up(isa, tmp_path):
    (path := tmp_path / "zoo").write_bytes(stripped(zoo(isa).read_bytes(), {}))
    path.chmod(0o755)
    functions = Image(path).functions
    assert selected(functions, "e*") == selected(functions, "*e*") == []
    assert selected(functions, "") == selected(functions, "*") == selected(functions, "eh_frame.*") == list(functions)
    program = "pid$target::{}:entry {{ @ = count(); }}"
    with pytest.raises(CompileError, match="does not match any probes"):
        run(isa, [path, "recursion"], program.format("e*"))
    assert run(isa, [path, "recursion"], program.format("eh_frame.*")).fired > 100
