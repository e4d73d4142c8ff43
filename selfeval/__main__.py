"""`python -m selfeval` is the command `selfeval`."""

from selfeval.cli import main

if __name__ == "__main__":
    main(prog_name="selfeval")
