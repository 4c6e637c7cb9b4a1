"""What the script's loaders do, measured from inside: batches, what is held of them, and what is wrong with them."""
