"""The container that every target starts: what of a plan is in it, before any target's text."""
