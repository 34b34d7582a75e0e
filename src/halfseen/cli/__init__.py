"""The command line: one command a file. Only this room prints."""

from halfseen.cli.app import main

__all__ = ["main"]
