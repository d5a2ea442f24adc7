"""What dtrace.c is: probes, enablings, the DIF machine, buffers, aggregations, speculations."""
