"""trainlaunch: makes a containerised PyTorch job start right on every target."""

__version__ = "0.1.0"
