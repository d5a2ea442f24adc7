"""Tools of several commands: targets, workers, standard streams, packages of kernels."""
