"""The reference of the language and the command, section by section."""
