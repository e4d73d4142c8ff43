"""Asking models: requests, providers, the store of replies, rates and ceilings."""
