"""A run that goes on, as a look at its processes shows it: who waits where, and for what."""
