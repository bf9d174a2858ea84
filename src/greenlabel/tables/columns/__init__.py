"""Columns <-> features, and the column to fill: what a column is, how it becomes numbers, which cells are labels.

May import ``tables.io``, ``graph``, ``_common`` and ``errors``.
"""
