"""The job file: what a user asks for, as typed values with places."""

from launcher.job.read import read_job

__all__ = ["read_job"]
