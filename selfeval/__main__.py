"""`python -m selfeval` is the command `selfeval`."""

from selfeval.cli import main

main(prog_name="selfeval")
