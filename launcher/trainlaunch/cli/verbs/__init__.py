"""The verbs, a module each: EXAMPLES, EXIT_CODES, ARGUMENTS and run."""
