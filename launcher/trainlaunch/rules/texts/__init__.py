"""The rules of written texts, a module a family."""
