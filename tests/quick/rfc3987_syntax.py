"""In place of a module that jsonschema does without: its import takes a second in every process, and no notebook has
what it checks. The tests put this folder before it on `PYTHONPATH`."""

raise ImportError("not in the tests")
