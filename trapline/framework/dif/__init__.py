"""DIF: its interpreter, its subroutines, its validation."""
