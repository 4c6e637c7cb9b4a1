"""Reads what people wrote by hand and judges it: files and their kinds, allowed findings, fixes."""
