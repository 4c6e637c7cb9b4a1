"""A job file with the policy that it is under: how every verb reads a job."""

from trainlaunch.policy.read import read_job, rendered_targets, stated_images

__all__ = ["read_job", "rendered_targets", "stated_images"]
