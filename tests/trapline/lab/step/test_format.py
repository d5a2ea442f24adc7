"""Recordings have the form of the schema, and nothing that the schema does not name."""

import json
from importlib.resources import files

import pytest

from emu.isa import ISAS
from tests.trapline.lab.step.recorded import GUEST, recorded, recorded_jump
from trapline.lab.step.recording import VERSION, Mode, Stage
from trapline.lab.step.report import as_json

jsonschema = pytest.importorskip("jsonschema")


def schema(*, closed=False):
    """The schema; `closed`: with no other fields than those that it names."""
    found = json.loads((files("trapline.lab.step") / "recording.schema.json").read_text("utf-8"))
    if closed:
        for kind in found["$defs"].values():
            if "properties" in kind:
                kind["additionalProperties"] = False
                assert set(kind["required"]) == set(kind["properties"])
    return found


@pytest.mark.parametrize("isa", ISAS)
def test_a_recording_has_the_form_of_the_schema(isa):
    jsonschema.Draft202012Validator.check_schema(schema())
    both = [recorded(isa, path=GUEST), recorded_jump(isa)]
    jsonschema.validate(json.loads(as_json(both)), schema(closed=True))
    jsonschema.validate(json.loads(as_json(both[:1])), schema(closed=True))


def test_the_schema_refuses_another_form_and_names_what_there_is():
    kinds = schema()["$defs"]
    assert kinds["recording"]["properties"]["version"]["const"] == VERSION
    assert kinds["step"]["properties"]["stage"]["enum"] == list(Stage)
    assert kinds["step"]["properties"]["mode"]["enum"] == list(Mode)
    data = json.loads(as_json([recorded("x86_64", path=GUEST)]))
    data["firings"][0]["steps"][3]["pc"] = 5
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, schema())
