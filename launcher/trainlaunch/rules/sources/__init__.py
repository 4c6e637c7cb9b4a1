"""What rules look at in texts that people wrote, and what they say of them."""
