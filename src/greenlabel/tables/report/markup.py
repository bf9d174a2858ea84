"""HTML and SVG as text. Whatever is not markup already is escaped, so no value of a table can become part of a page."""

import html
from typing import Any

EMPTY_TAGS = {"meta", "link", "br"}


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def element(tag: str, *children: Any, **attributes: Any) -> Markup:
    """<tag attributes>children</tag>.

    Children and attributes that are None are left out. Names of attributes lose a last underscore; the others become
    hyphens: class_="bar", stroke_width=2.
    """
    written = "".join(f' {_key(key)}="{escape(value)}"' for key, value in attributes.items() if value is not None)
    if tag in EMPTY_TAGS:
        return Markup(f"<{tag}{written}>")
    return Markup(f"<{tag}{written}>{joined(*children)}</{tag}>")


def joined(*children: Any) -> Markup:
    return Markup("".join(escape(child) for child in children if child is not None))


def escape(value: Any) -> str:
    if isinstance(value, Markup):
        return value
    return html.escape(f"{value:.4g}" if isinstance(value, float) else str(value))


def _key(key: str) -> str:
    return key.rstrip("_").replace("_", "-")
