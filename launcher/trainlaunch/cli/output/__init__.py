"""How results, findings and tables stand on the two streams."""
