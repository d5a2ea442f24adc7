"""The pid provider and the USDT back end: breakpoints in user programs."""

from __future__ import annotations

from providers.fasttrap.fasttrap import PORTS, Fasttrap
from providers.fasttrap.pid import PidError, PidProbes, Wanted, parse_provider
from providers.fasttrap.port import Fidelity

__all__ = ["PORTS", "Fasttrap", "Fidelity", "PidError", "PidProbes", "Wanted", "parse_provider"]
