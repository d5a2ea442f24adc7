"""Races between a CPU that writes a patch and CPUs that execute the patched code, in every order."""
