"""What arguments commands take, and what they mean."""
