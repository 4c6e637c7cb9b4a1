"""The rules of a plan, a module a family."""
