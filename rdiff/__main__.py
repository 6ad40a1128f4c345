"""`python -m rdiff`: the command line, also where another program is called rdiff."""

from rdiff.cli import main

if __name__ == "__main__":
    main(prog_name="rdiff")
