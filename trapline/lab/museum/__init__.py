"""The museum: real bugs of real probe implementations."""
