"""Reads what a training script's text says of its loaders, options and ranks; nothing of it is run or imported."""
