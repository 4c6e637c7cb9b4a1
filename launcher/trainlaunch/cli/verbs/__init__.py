"""The verbs, a module each, which has USAGE and run."""
