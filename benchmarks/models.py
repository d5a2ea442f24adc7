"""The models of real machines: their predictions beside published figures not used to make them."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.figures import Figures, Scale
from emu.isa import Isa
from trapline.cost.models import chosen


def measure(isas: Sequence[Isa], scale: Scale) -> Figures:
    """Predict."""
    del scale  # there is nothing to make smaller
    names = {isa.name for isa in isas}
    machines = [machine for machine in chosen([]) if names & {*machine.isas}]
    return Figures(
        "Predicted beside measured",
        ("model", "machine", "what", "measured ns", "predicted ns", "off %", "source"),
        [
            [
                machine.name,
                machine.title,
                check.what,
                check.measured,
                machine.published(check.events),
                round(100 * (machine.published(check.events) / check.measured - 1), 1),
                machine.source,
            ]
            for machine in machines
            for check in machine.checks
        ],
        "None of these figures was used to make the models; trapline/cost/models.toml says which were.",
        frozenset({"model", "machine", "what", "source"}),
        [f"no figures of probes on {isa.name} are published" for isa in isas if not _known(isa)],
    )


def _known(isa: Isa) -> bool:
    return any(isa.name in machine.isas for machine in chosen([]))
