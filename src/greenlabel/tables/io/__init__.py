"""Files <-> frames: CSV in any dialect, Parquet, Excel, JSON lines, arrays; at once, in blocks, in parts.

May import ``blocks``, ``_common`` and ``errors``.
"""
