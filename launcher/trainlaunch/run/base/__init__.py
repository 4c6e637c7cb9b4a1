"""What the backends import, and nothing that imports them."""
