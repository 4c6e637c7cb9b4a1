"""Evidence, logs and what is read out of both: what symptoms import."""
