"""Templates as Python, written by launcher/render/compiler.py from templates/; never changed by hand."""
