"""Somebody else's repository: how far it reaches, what git tracks in it, and how a file of it is opened."""
