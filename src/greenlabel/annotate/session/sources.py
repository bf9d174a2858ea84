"""What a session needs of a table; who reads tables has it."""

from typing import Any, Protocol


class Source(Protocol):
    """A table to label: its features, and what a person sees of each row."""

    name: str  # of the table, as it is shown
    target: str  # the column to fill
    fingerprint: str  # hash of the content: a journal and a map belong to it
    n: int
    X: Any  # (n, d) features as fit takes them, scaled
    given: list[tuple[int, str]]  # labels that the table came with
    classes: list[str]  # of these and of the user, in order
    kind: str  # "images", "text" or "fields"

    def fields(self, row: int) -> list[tuple[str, str]]: ...

    def text(self, row: int) -> str | None: ...

    def picture(self, row: int) -> tuple[str, bytes] | None: ...

    def search(self, words: str, limit: int) -> list[int]: ...

    def save(self, labels: dict[int, str], ignored: set[int], report: bool, model: bool) -> dict[str, Any]: ...
