"""What every rule of a plan shares, loaded at each start."""
