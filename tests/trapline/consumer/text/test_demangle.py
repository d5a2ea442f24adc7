"""C++ names, demangled."""

import builtins

import pytest

from trapline.consumer.text.demangle import DemanglingError, demangler


def test_names_are_shown_as_they_are_written():
    pytest.importorskip("cxxfilt")
    spell = demangler()
    assert spell("_ZN4shop4Till3addIlEEiT_") == "int shop::Till::add<long>(long)"
    assert spell("main") == "main"
    assert spell("_Zwrong") == "_Zwrong"


def test_without_the_library_the_message_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def missing(name, *rest, **more):
        if name == "cxxfilt":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(DemanglingError, match=r"pip install 'trapline\[cxx\]'"):
        demangler()
