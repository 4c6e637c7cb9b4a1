"""What the verbs about runs share."""
