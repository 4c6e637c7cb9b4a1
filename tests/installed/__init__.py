"""The package as pip installs it."""
