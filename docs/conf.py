"""The site: which pages there are, in which order a reader finds them, and how they look.

Pages are plain Markdown, read where they are: sources start at the root of the repository, so that the links between
README, docs and benchmarks are the same on the site and on a forge. What plain Markdown cannot say is added here as a
page is read: the navigation to the first page, and to a line ``<!-- api: NAME -->`` the docstring of NAME.

``python docs/make_site.py`` builds it.
"""

import importlib
import inspect
import re
from datetime import date
from pathlib import Path

from docutils import nodes

import greenlabel

ROOT = Path(__file__).parents[1]

# Pages of each part of the navigation, in order, by the name that stands there: a new page is one line here.
NAVIGATION = {
    "Start": {
        "Quickstart": "docs/quickstart",
        "Label a table": "docs/tables",
        "Reading the report": "docs/report",
        "Which rows to label": "docs/which-rows",
        "Label on a page": "docs/annotate",
        "Coming from LabelSpreading": "docs/from-label-spreading",
    },
    "Examples": {
        "Gallery": "docs/examples/index",
        "Handwritten digits": "docs/examples/handwritten_digits",
        "Short texts": "docs/examples/short_texts",
        "A mixed table": "docs/examples/mixed_table",
        "Embeddings, class shares": "docs/examples/embeddings_and_shares",
        "Your own graph": "docs/examples/own_graph",
        "A label budget": "docs/examples/label_budget",
        "Suspicious labels": "docs/examples/suspicious_labels",
        "More rows than memory": "docs/examples/beyond_memory",
    },
    "Understand": {
        "How it works": "docs/how-it-works",
        "Parameters": "docs/parameters",
        "The blend": "docs/blend",
        "Scale": "docs/scale",
    },
    "Reference": {"API": "docs/api", "Command line": "docs/command-line"},
    "Results": {
        "Compared with": "docs/compared",
        "Speed": "benchmarks/RESULTS",
        "Accuracy": "benchmarks/accuracy",
        "Learning curves": "benchmarks/queries",
        "Wrong labels found": "benchmarks/suspects",
        "Does the stated accuracy hold?": "benchmarks/estimates",
        "Labelling on the page": "benchmarks/annotate",
        "What was tried": "benchmarks/tried",
        "Reproduce the paper": "docs/reproduce",
        "The paper's tables": "docs/paper/page",
        "What reproduces": "docs/paper/README",
    },
    "Project": {"Changelog": "CHANGELOG", "Contributing": "CONTRIBUTING", "Security": "SECURITY"},
}

project = "greenlabel"
author = "the greenlabel developers"
version = release = greenlabel.__version__
root_doc = "README"
include_patterns = ["README.md", *(f"{page}.md" for pages in NAVIGATION.values() for page in pages.values())]
nitpicky = False  # types in docstrings are words, not names; public names are held by make_site.py

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
highlight_language = "text"  # a block without a language is a command or a drawing
smartquotes = False  # --options and "words" are meant as they stand
toc_object_entries = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say them in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

LOGO = "docs/site/static/logo.svg"
html_theme = "pydata_sphinx_theme"
html_title = "greenlabel"
html_static_path = ["site/static"]
templates_path = ["site/templates"]
html_css_files = ["greenlabel.css"]
html_favicon = "site/static/logo.svg"
html_additional_pages = {"index": "index.html"}  # the site's address leads to the first page
html_sidebars = {"**": ["contents.html"]}
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_last_updated_fmt = None
html_theme_options = {
    "logo": {
        "text": "greenlabel",
        "image_light": "docs/site/static/logo.svg",
        "image_dark": "docs/site/static/logo.svg",
    },
    "navbar_center": [],
    "navbar_persistent": ["search-button-field"],
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copyright = f"{date.today().year}, {author}"

SHORT_CELL, LONG_CELL = 14, 24  # letters up to which a cell is never broken, and beyond which it needs some width
WIDE_TABLE, KEY_CELL = 5, 60  # columns, and letters of a cell that may stay in sight as the others are moved
COMMANDS = re.compile(r"(python3?|pip|git|greenlabel|bash|\.venv/bin/\w+|\w+Error:) ")
OPTION = re.compile(r"(?<!\S)(-\S+)")

# What scikit-learn adds to every estimator, and what only a class of one's own needs.
FOREIGN_BASES = "ClassifierMixin, BaseEstimator, object, list, ValueError, UserWarning"
INNER = {
    "get_metadata_routing",
    "check_parameters",
    "propagators",
    "propagators_in_blocks",
    "sketch_of",
    "graph_settings",
    "with_fitted",
    "labelled",
    "checked_features",
    "graph_of",
    "predict_proba_all_rows",
    "predict_proba_reached",
    "merge_equal_rows",
}


def toctrees() -> str:
    """The navigation as directives."""
    parts = []
    for caption, pages in NAVIGATION.items():
        lines = "\n".join(f"{name} </{page}>" for name, page in pages.items())
        parts.append(f"```{{toctree}}\n:hidden:\n:maxdepth: 1\n:caption: {caption}\n\n{lines}\n```\n")
    return "\n".join(parts)


def directive(name: str) -> str:
    """The autodoc directive for a dotted name: a class with its methods, a function or a value."""
    module, _, last = name.rpartition(".")
    thing = getattr(importlib.import_module(module), last)
    if not inspect.isclass(thing):
        return f".. auto{'function' if callable(thing) else 'data'}:: {name}"
    if issubclass(thing, Warning | Exception):
        return f".. autoexception:: {name}"
    return f".. autoclass:: {name}\n   :members:\n   :inherited-members: {FOREIGN_BASES}"


def add_what_markdown_cannot_say(app, page, source):
    if page == root_doc:
        source[0] += "\n" + toctrees()
    source[0] = re.sub(
        r"^<!-- api: ([\w.]+) -->$",
        lambda match: f"```{{eval-rst}}\n.. highlight:: default\n\n{directive(match[1])}\n```",
        source[0],
        flags=re.MULTILINE,
    )


def keep_cells_readable(app, doctree, page):
    """Numbers such as 94.7 ± 0.5 stand on one line, sentences keep some width; a wide table can be moved sideways."""
    for cell in doctree.findall(nodes.entry):
        letters = len(cell.astext())
        if letters <= SHORT_CELL:
            cell["classes"].append("short")
        elif letters > LONG_CELL:
            cell["classes"].append("long")


def keep_names_of_rows_in_sight(app, doctree, page):
    """The first column of a wide table stays where it is while the others are moved sideways."""
    for table in doctree.findall(nodes.table):
        rows = [row.children for row in table.findall(nodes.row)]
        if len(rows[0]) >= WIDE_TABLE and all(len(row[0].astext()) <= KEY_CELL for row in rows):
            table["classes"].append("wide")


def wrap_commands(app, doctree, page):
    """A long command or message is broken where a window ends; drawings and other things that are printed are not."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext()
        if all(COMMANDS.match(line) for line in text.splitlines()):
            block["classes"].append("commands")
            keep_options_whole(block, text)


def keep_options_whole(block, text):
    """A browser would break -o behind its hyphen. Sphinx leaves a block as it is whose source is not its text."""
    block.clear()
    for number, part in enumerate(OPTION.split(text)):
        block += nodes.inline("", part, classes=["option"]) if number % 2 else nodes.Text(part)
    block.rawsource = ""


def leave_out_inner_names(app, kind, name, thing, skip, options):
    """Methods for subclasses, fitted attributes (the class lists them), and those that scikit-learn writes itself."""
    if name in INNER or name.endswith("_request") or (name.endswith("_") and isinstance(thing, property)):
        return True
    return None


def setup(app):
    app.connect("source-read", add_what_markdown_cannot_say)
    for change in (keep_cells_readable, keep_names_of_rows_in_sight, wrap_commands):
        app.connect("doctree-resolved", change)
    app.connect("autodoc-skip-member", leave_out_inner_names)
