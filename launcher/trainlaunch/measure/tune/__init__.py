"""Finds the fastest setting of the loader that trains: what to try, the runs, what limits it, and how it is told."""
