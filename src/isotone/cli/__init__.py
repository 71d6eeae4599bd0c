"""The command line: thin, over functions that Python code can call as well."""

from isotone.cli.main import app

__all__ = ["app"]
