"""``python -m isotone``: the command line."""

from isotone.cli import app

if __name__ == "__main__":
    app(prog_name="isotone")
