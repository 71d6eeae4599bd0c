"""``python -m isotone_light``."""

import sys

from isotone_light.cli import main


def run() -> None:
    """Run the command, and exit."""
    sys.exit(main())


if __name__ == "__main__":
    run()
