"""The API of ctxtool serve for Python: see README.md."""

from .client import Client, Problem

__all__ = ["Client", "Problem"]
