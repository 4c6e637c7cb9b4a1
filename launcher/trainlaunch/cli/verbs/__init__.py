"""The commands, a module each, which has USAGE and run."""
