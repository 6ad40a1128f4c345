"""The command line, `rdiff COMMAND`: one command a file, on top of the library."""

from rdiff.cli.group import main

__all__ = ["main"]
