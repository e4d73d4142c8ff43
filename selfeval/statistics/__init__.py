"""Estimates with intervals and tests; no evaluation is known here."""
