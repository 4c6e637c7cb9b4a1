"""What arguments verbs take, and what they mean."""
