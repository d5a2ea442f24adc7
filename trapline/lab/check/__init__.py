"""What can be proved about patching by running or by looking at all there is."""
