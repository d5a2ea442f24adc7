"""A CPU stores to code, jumps to it soon, and executes twice what is in between.

A CPU watches whether a store changes what it has already fetched, and if so begins again behind the
store.  Early AMD-K6 do so too late if the changed code is the target of a jump that they have
predicted: one or two instructions before the jump have been executed already, and are executed
again.  Most of them do no harm twice; `inc` does.  A serializing instruction behind the store, as
Linux' text_poke_early has, leaves nothing to repeat.
"""

from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.exhibit import Exhibit
from trapline.lab.museum.orders import InOrders

EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="AMD-K6, B stepping: Re-execution of Instructions Due to Self-Modifying Code",
    references=(
        "AMD-K6 Processor Revision Guide, 2.6.2; http://membres.multimania.fr/poulot/k6bug_faq.html",
        "Linux arch/x86/kernel/alternative.c, `text_poke_early()`",
    ),
    isa_name="i386",
    provider="jump label",
    code=bytes.fromhex(
        "40"  # inc eax
        "eb00"  # jmp 3
        "3e8d742600"  # lea esi, ds:[esi]
        "c3"  # ret
    ),
    old=Rules(method="write-nosync"),
    was="the CPU stores the jump, and goes on with inc and with a jump to what it has stored",
    now="it executes a serializing instruction behind the store",
    check=InOrders(
        bytes.fromhex("e900010000"), right="write-early", offset=3, scenario="self", cpus=1, erratum="amd-k6"
    ),
)
