"""What every room may use: checks of parameters, threads, whole files, optional imports, the clock of a run.

Imports nothing of greenlabel but ``errors``.
"""
