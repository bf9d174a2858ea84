"""The result of a table as one HTML page that loads nothing, and as a summary for the terminal.

May import ``tables.io``, ``tables.columns`` and ``tables.outcome``.
"""
