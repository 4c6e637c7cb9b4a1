"""Runs in the job's own processes, on Python 3.8 and later, beside torch alone. Nothing here makes a job fail."""
