"""Templates, which print only what a quoting filter made."""
