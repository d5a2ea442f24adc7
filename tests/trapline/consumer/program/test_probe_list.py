"""Lists of probes, their stability and arguments."""

from __future__ import annotations

import pytest

from providers.base import FREEBSD_KERNEL_ATTRIBUTES, ArgumentDescription, Attribute, DependencyClass, Stability
from trapline.consumer.program.probe_list import HEADING, list_line, show_probe
from trapline.d.check.stability import description_attribute
from trapline.framework.base.device import ProbeInfo
from trapline.framework.base.program import ProbeDescription

READ = ProbeInfo(17, ProbeDescription("fbt", "kernel", "sys_read", "entry"), FREEBSD_KERNEL_ATTRIBUTES)


def test_probes_are_listed_in_columns():
    assert HEADING + list_line(READ) == (
        "   ID   PROVIDER            MODULE                          FUNCTION NAME\n"
        "   17        fbt            kernel                          sys_read entry\n"
    )


def test_a_probe_is_shown_with_attributes_and_argument_types():
    arguments = [ArgumentDescription(0, "struct thread *"), ArgumentDescription(1, "int", "uint32_t")]
    text = show_probe(READ, READ.description, lambda index: arguments[index] if index < 2 else None)
    assert text == (
        "\n\tProbe Description Attributes\n"
        "\t\tIdentifier Names: Private\n"
        "\t\tData Semantics:   Private\n"
        "\t\tDependency Class: Unknown\n"
        "\n\tArgument Attributes\n"
        "\t\tIdentifier Names: Private\n"
        "\t\tData Semantics:   Private\n"
        "\t\tDependency Class: ISA\n"
        "\n\tArgument Types\n"
        "\t\targs[0]: struct thread *\n"
        "\t\targs[1]: uint32_t\n"
        "\n"
    )


def test_a_probe_without_arguments_says_none():
    text = show_probe(READ, READ.description, lambda index: None)
    assert text.endswith("\n\tArgument Types\n\t\tNone\n\n")


EVOLVING = Attribute(Stability.EVOLVING, Stability.EVOLVING, DependencyClass.COMMON)
UNSTABLE = Attribute(Stability.UNSTABLE, Stability.UNSTABLE, DependencyClass.COMMON)
PRIVATE = Attribute(Stability.PRIVATE, Stability.PRIVATE, DependencyClass.UNKNOWN)


@pytest.mark.parametrize(
    ("pattern", "attribute"),
    [
        (ProbeDescription("fbt", "", "", "entry"), EVOLVING),
        (ProbeDescription("fbt", "kernel", "", "entry"), PRIVATE),
        (ProbeDescription("fbt", "k*", "", "entry"), EVOLVING),
        (ProbeDescription("", "", "", "entry"), UNSTABLE),
        (ProbeDescription("fb?", "", "", "entry"), UNSTABLE),
    ],
)
def test_a_description_is_as_stable_as_the_least_of_the_fields_it_names(pattern, attribute):
    assert description_attribute(READ, pattern) == attribute
