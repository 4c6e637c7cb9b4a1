"""Trains."""

from layers.width import WIDTH

print(WIDTH, "$(HOME) $$ {{ braces }}")
