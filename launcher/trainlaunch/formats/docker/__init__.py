"""`docker run`: one table of its flags, lines that people write, the engine's request for the same container."""
