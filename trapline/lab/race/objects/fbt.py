"""The glue for the patcher of FreeBSD's FBT: `fbt_patch_tracepoint` of fbt_isa.c."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from emu.isa.base import Isa
from trapline.lab.objects.kernels.fbt import FbtKernel
from trapline.lab.objects.user_code import ObjectError
from trapline.lab.race.objects.text_poke import TextPokeGlue
from trapline.lab.race.patch import Patch

_ENTRY: Final = "fbt_patch_tracepoint"


class FbtPokeGlue(TextPokeGlue, FbtKernel):
    """FBT's kernel, which records what the patcher does."""

    entries = (_ENTRY,)
    data: ClassVar[Mapping[str, int]] = {**FbtKernel.data, **TextPokeGlue.data}
    framework: ClassVar[bool] = True

    @classmethod
    def usual_patch(cls, isa: Isa) -> str:
        """Return the name of the patch to explore by default."""
        del isa
        return "fbt::malloc:entry"

    def entry(self, wanted: str = "") -> str:
        """Return the function that patches.  Raises `ObjectError`."""
        if wanted not in {"", _ENTRY}:
            raise ObjectError(f"the glue fbt calls {_ENTRY}, not {wanted}")
        return _ENTRY

    def write(self, entry: str, patch: Patch, data: bytes) -> None:
        """Patch by a record as fbt.c has it.  Raises `LayoutError` without debugging information."""
        record = self.code.view("fbt_probe_t")
        record["fbtp_patchpoint"] = patch.site
        record["fbtp_patchval"] = int.from_bytes(patch.new, "little")
        record["fbtp_savedval"] = int.from_bytes(patch.old, "little")
        self.code.call(entry, record.address, int.from_bytes(data, "little"))
