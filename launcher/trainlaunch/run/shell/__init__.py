"""A way into a job's container: what is run there, and the terminal that it is run on."""
