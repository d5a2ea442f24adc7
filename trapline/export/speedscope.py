"""speedscope's file format: https://www.speedscope.app/file-format-schema.json."""

from __future__ import annotations

import json

from trapline.export.events import Recording
from trapline.export.folded import fold


def document(recording: Recording) -> str:
    """Return the file: one profile of samples."""
    folded = fold(recording)
    numbers: dict[str, int] = {}
    samples = [[numbers.setdefault(frame, len(numbers)) for frame in frames] for frames in folded]
    weights = list(folded.values())
    return (
        json.dumps(
            {
                "$schema": "https://www.speedscope.app/file-format-schema.json",
                "exporter": "trapline",
                "shared": {"frames": [{"name": name} for name in numbers]},
                "profiles": [
                    {
                        "type": "sampled",
                        "name": "trapline",
                        "unit": "none",
                        "startValue": 0,
                        "endValue": sum(weights),
                        "samples": samples,
                        "weights": weights,
                    }
                ],
            },
            ensure_ascii=False,
        )
        + "\n"
    )
