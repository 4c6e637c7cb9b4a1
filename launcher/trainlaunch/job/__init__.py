"""The job file: what a user asks for, as typed values with places."""
