"""Estimates after they are made: what they say, paired differences, and files of them."""
