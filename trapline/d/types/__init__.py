"""The types of D: C's and string, their rules, their names, and the declarations that make them."""
