"""Write docs/command-line.md from the commands' own help: python docs/make_reference.py"""

import re
from pathlib import Path

import typer

from greenlabel.cli import app

PAGE = Path(__file__).with_name("command-line.md")
CODE = re.compile(  # in a sentence of help
    r"(?<![\w`])(greenlabel (?:paper )?[a-z]+(?: --[a-z-]+)?|--[a-z-]+|[A-Z]+_[a-z]+|'[^' ]*\*[^' ]*'|tcp://[\w:]+)"
)
OPENING = """# The command line

What every `greenlabel COMMAND -h` says, on one page; `python docs/make_reference.py` writes it, and a test keeps it
true. How to use the commands on a table of your own is told in [Label a table](tables.md).

Exit codes: 0, all is well; 1, something about the data or the files is wrong, one line says what; 2, the command was
not understood; 130, it was interrupted. Where nobody reads the output any more, a command ends with code 1 and without
a word. Files appear whole or not at all. `greenlabel --install-completion` teaches your shell the commands.
"""


def reference() -> str:
    root = typer.main.get_command(app)
    return "\n".join([OPENING, *sections(root, "greenlabel")]).rstrip() + "\n"


def sections(command, name):
    """The command, then those below it."""
    below = [
        part for child, sub in getattr(command, "commands", {}).items() for part in sections(sub, f"{name} {child}")
    ]
    return below if name == "greenlabel" else [section(command, name), *below]


def section(command, name):
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    options = [param for param in command.params if param.param_type_name == "option" and param.name != "help"]
    usage = " ".join(
        [name, *(f"[{a.name.upper()}…]" if a.nargs < 0 else a.name.upper() for a in arguments), "[OPTIONS]"]
    )
    parts = [f"## {name}\n", f"```\n{usage}\n```\n", f"{paragraphs(command.help)}\n"]
    rows = [*(line(f"`{a.name.upper()}`", a) for a in arguments), *(line(option_name(o), o) for o in options)]
    if rows:
        parts += ["| | |\n|---|---|", *rows, ""]
    if command.epilog:
        word, examples = command.epilog.split(": ", 1)
        parts.append(f"{word}: {', '.join(f'`{example}`' for example in examples.split('; '))}\n")
    return "\n".join(parts)


def paragraphs(text):
    return "\n\n".join(with_code(" ".join(part.split())) for part in (text or "").split("\n\n"))


def with_code(text):
    """A sentence of help in which commands and options are set as such, so that no line ends within one."""
    return CODE.sub(r"`\1`", text)


def option_name(option):
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    value = "" if option.is_flag else option.metavar or "VALUE"
    return f"{names} {value}".strip().replace("|", "\\|")


def line(name, param):
    default = param.default
    has_default = isinstance(default, (str, int, float, Path)) and not isinstance(default, bool) and not param.required
    return f"| {name} | {with_code(param.help or '')}{f' Default: `{default}`.' if has_default else ''} |"


if __name__ == "__main__":
    PAGE.write_text(reference())
