"""Python that runs in the job's own processes, delivered by the wrapper as the package `trainlaunch_inside`.

It imports torch and the standard library only, and runs on every Python from 3.8 on. Nothing here makes a job fail.
"""
