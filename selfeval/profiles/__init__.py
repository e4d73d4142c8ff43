"""A profile: one page on what a model knows about itself, from all three evaluations."""
