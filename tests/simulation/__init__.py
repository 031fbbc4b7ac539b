"""The whole control plane in one thread, under virtual time, with faults that are chosen: see docs/simulation.md."""
