"""Every run of the tests is the same: hypothesis draws its examples from a fixed seed."""

from hypothesis import settings

settings.register_profile("same-every-time", derandomize=True, deadline=None)
settings.load_profile("same-every-time")
