"""The command `greenlabel`, run inside the process of the tests."""

import sys
from unittest.mock import patch

from greenlabel.cli import main


def run(*words):
    """Exit code of the command; output is read by capsys."""
    with patch.object(sys, "argv", ["greenlabel", *map(str, words)]):
        try:
            main()
        except SystemExit as end:
            return end.code or 0
    return 0


def refusal(capsys):
    """The one line of an error, after a command that has said nothing else."""
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("greenlabel: ")
    assert said.err.count("\n") == 1
    return said.err
