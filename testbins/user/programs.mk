programs:
