"""Probers: they probe a site by the provider's own code."""
