"""dtrace's command line as data."""

from __future__ import annotations

import pytest

from trapline.consumer.request import MachineOptions, Mode, Setting, Source, Specifier
from trapline.consumer.usage import FlagError, UsageError, parse_arguments


def test_flags_cluster_and_values_may_be_attached():
    request = parse_arguments(["-qn", "BEGIN", "-b4m", "-Zv"])
    assert request.sources == [Source(Specifier.NAME, "BEGIN")]
    assert request.settings == [Setting("-q", "quiet", None), Setting("-b 4m", "bufsize", "4m")]
    assert (request.allow_zero, request.verbose) == (True, True)


def test_words_that_are_no_flags_may_stand_anywhere():
    request = parse_arguments(["one", "-q", "two", "-n", "BEGIN", "three"])
    assert request.arguments == ["one", "two", "three"]


def test_after_two_dashes_one_word_is_an_argument_and_flags_count_again():
    request = parse_arguments(["--", "-q", "-F"])
    assert request.arguments == ["-q"]
    assert [setting.name for setting in request.settings] == ["flowindent"]


def test_a_lone_dash_is_an_argument():
    assert parse_arguments(["-"]).arguments == ["-"]


def test_programs_keep_their_order():
    request = parse_arguments(["-s", "a.d", "-P", "fbt", "-m", "kernel", "-f", "read", "-i", "3"])
    assert [source.specifier for source in request.sources] == [
        Specifier.SCRIPT,
        Specifier.PROVIDER,
        Specifier.MODULE,
        Specifier.FUNCTION,
        Specifier.ID,
    ]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("BEGIN", "BEGIN"),
        ("fbt:::entry/pid == 1/{ }", "fbt:::entry"),
        ("BEGIN { x; }", "BEGIN "),
        ("BEGIN; x", "BEGIN"),
    ],
)
def test_a_description_is_named_up_to_its_predicate_or_body(text, name):
    assert Source(Specifier.NAME, text).name == name


def test_a_script_is_named_by_its_path():
    assert Source(Specifier.SCRIPT, "scripts/a.d").name == "scripts/a.d"


def test_an_option_is_named_up_to_its_value():
    assert parse_arguments(["-x", "bufsize=4m", "-x", "quiet"]).settings == [
        Setting("-x bufsize", "bufsize", "4m"),
        Setting("-x quiet", "quiet", None),
    ]


def test_the_machine_is_chosen_by_long_flags():
    arguments = ["--isa", "riscv64", "--guest=linux", "--root", "/srv", "--trap=guest", "--console", "-c", "ls  -l /"]
    assert parse_arguments(arguments).machine == MachineOptions(
        "riscv64", "linux", "/srv", trap="guest", console=True, commands=("ls  -l /",)
    )


def test_the_environment_of_commands_is_for_the_machine():
    machine = parse_arguments(["-x", "setenv=A=1", "-x", "unsetenv=B"]).machine
    assert machine.environment == (("A", "1"), ("B", None))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-k"], "illegal option -- k"),
        (["-:"], "illegal option -- :"),
        (["-n"], "option requires an argument -- n"),
        (["--isa"], "option requires an argument -- -isa"),
        (["--cpu", "4"], "illegal option -- -cpu"),
        (["--console=yes"], "option doesn't take an argument -- -console"),
        (["-33"], "illegal option -- 33"),
        (["-65"], "illegal option -- 65"),
    ],
)
def test_a_flag_getopt_refuses_is_reported_as_getopt_does(arguments, message):
    with pytest.raises(FlagError) as caught:
        parse_arguments(arguments)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-l", "-V"], "only one of the [-AGhlV] options can be specified at a time"),
        (["--isa", "m68k"], "--isa m68k: choose from x86_64, aarch64, riscv64, i386"),
        (["-c", " "], "-c needs a command"),
        (["-p", "x"], "-p x: expected the number of a process of the guest"),
    ],
)
def test_a_command_line_that_cannot_be_followed_says_why(arguments, message):
    with pytest.raises(UsageError) as caught:
        parse_arguments(arguments)
    assert str(caught.value) == message


def test_modes_are_recognised():
    assert [parse_arguments([flag, "-n", "BEGIN"]).mode for flag in ("-A", "-h", "-G", "-l", "-V")] == [
        Mode.ANONYMOUS,
        Mode.HEADER,
        Mode.LINK,
        Mode.LIST,
        Mode.VERSION,
    ]
    assert parse_arguments(["-64", "-e"]).mode is Mode.TRACE
