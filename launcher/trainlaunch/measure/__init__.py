"""Measures a job's own script on a target: what its loaders need of /dev/shm, and what is wrong with them."""
