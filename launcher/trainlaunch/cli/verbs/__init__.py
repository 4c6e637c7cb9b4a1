"""The verbs, a module each: EXAMPLES, EXIT_CODES, add_arguments and run."""
