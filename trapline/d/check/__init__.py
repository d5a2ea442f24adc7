"""The check of D programs: syntax trees to typed trees, and the names that programs use and define."""
