"""The report as JSON: one object; addresses, register values and bytes are hexadecimal strings."""

from __future__ import annotations

import json
from typing import Any

from trapline.lab.check.report import facts
from trapline.lab.check.report.facts import Trouble
from trapline.lab.check.results import Tally
from trapline.lab.check.site.compare import Divergence, Outcome


def as_json(tally: Tally) -> str:
    """Return the report."""
    return json.dumps(as_data(tally), indent=1) + "\n"


def as_data(tally: Tally) -> dict[str, Any]:
    """Return the report as data for JSON."""
    return {
        "same": tally.same,
        "verdict": facts.verdict(tally),
        "checked": tally.spec,
        "sites": tally.sites,
        "states": tally.states,
        "states_left_out": tally.left_out,
        "outcomes": {outcome.value: tally.outcomes[outcome] for outcome in Outcome},
        "files": [
            {"file": file, "provider": provider, "outcomes": {one.value: count for one, count in outcomes.items()}}
            for (file, provider), outcomes in sorted(tally.files.items())
        ],
        "refusals": [{"rule": rule, "sites": count} for rule, count in tally.refusals.most_common()],
        "trouble": [_trouble(trouble) for trouble in facts.troubles(tally)],
        "left_out": list(tally.omitted),
        "runs": [
            {
                "name": run.name,
                "same": run.same,
                "proves": run.proves,
                "status": run.status,
                "instructions": run.instructions,
                "fired": run.fired,
                "differences": list(run.differences),
                "culprit": run.culprit or None,
            }
            for run in tally.runs
        ],
        "encodings": tally.encodings,
        "seconds": tally.seconds,
        "site_states_compared": tally.fresh,
        "site_states_tried_by": dict(tally.executed),
    }


def _trouble(trouble: Trouble) -> dict[str, Any]:
    site, result = trouble.site, trouble.result
    return {
        "file": trouble.file,
        "provider": trouble.provider,
        "outcome": result.outcome.value,
        "site": site.name,
        "address": f"{site.address:#x}",
        "function": site.function or None,
        "probe": site.probe or None,
        "bytes": trouble.code.hex(),
        "instruction": trouble.instruction,
        "why": result.why,
        "states": result.states,
        "divergences": [_divergence(divergence) for divergence in result.divergences],
    }


def _divergence(divergence: Divergence) -> dict[str, Any]:
    state = divergence.state
    return {
        "way": divergence.way,
        "state": {
            "kind": state.kind,
            "registers": {name: f"{value:#x}" for name, value in state.registers.items() if value},
            "flags": f"{state.flags:#x}",
            "vectors": state.vectors,
        },
        "differences": [difference._asdict() for difference in divergence.differences],
    }
