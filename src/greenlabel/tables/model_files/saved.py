"""Models as files: the feature steps and what predictions of new rows need, in one file of JSON and arrays.

A file from a stranger can predict wrongly, and do nothing else: it names no code, and everything in it is checked
against everything else before it is used (model_file, model_parts, blend_parts, feature_parts).
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from greenlabel.errors import ModelFileError
from greenlabel.tables.columns.features import TableFeatures
from greenlabel.tables.io.files import new_file
from greenlabel.tables.model_files.blends import read_model, write_model
from greenlabel.tables.model_files.container import FORMAT, Arrays, Flaw, Part, read_archive, write_archive
from greenlabel.tables.model_files.features import read_features, width_of, write_features

MAX_CLASSES = 100_000


@dataclass
class SavedModel:
    """What is needed to label new rows."""

    target: str
    classes: list[Any]
    features: TableFeatures
    model: Any
    unlabelled: list[str] = field(default_factory=list)  # values of the target that mean "no label"

    def save(self, path: Path) -> None:
        from greenlabel import __version__

        arrays = Arrays()
        facts = {
            "format": FORMAT,
            "greenlabel": __version__,
            "target": self.target,
            "classes": self.classes,
            "unlabelled": self.unlabelled,
            "features": write_features(self.features, arrays),
            "model": write_model(self.model, arrays),
        }
        with new_file(path) as draft:
            write_archive(draft, facts, arrays)


def load_model(path: str | Path) -> SavedModel:
    """The model in a file; one that is corrupt, of another format, not sound, or none of ours is refused.

    Parameters
    ----------
    path : str or Path
        A file written by ``greenlabel label --save`` or ``result.save``.

    Returns
    -------
    saved : SavedModel
        For ``predict_table``.
    """
    path = Path(path)
    try:
        return read_saved(read_archive(path))
    except Flaw as flaw:
        raise ModelFileError(
            f"{path} is no greenlabel model ({flaw}); give a file written by greenlabel label --save."
        ) from flaw


def read_saved(part: Part) -> SavedModel:
    classes, features, model = read_classes(part), read_features(part.part("features")), read_model(part.part("model"))
    if len(model.classes_) != len(classes):
        part.refuse("classes", "are not as many as those of the model")
    if model.n_features_in_ != width_of(features):
        part.refuse("features", "are not as many as those of the model")
    return SavedModel(part.text("target"), classes, features, model, part.texts("unlabelled"))


def read_classes(part: Part) -> list[Any]:
    """Text, whole numbers, or true and false, in the order of the model's; each once."""
    classes = part.items("classes")
    kinds = {type(label) for label in classes}
    if kinds not in ({str}, {int}, {bool}, {float}) or not len(set(classes)) == len(classes) <= MAX_CLASSES:
        part.refuse("classes", "are not different texts or numbers, or too many")
    if kinds == {str}:
        part.texts("classes")
    if kinds == {int} and (min(classes) < -(2**63) or max(classes) >= 2**63):
        part.refuse("classes", "are numbers beyond 64 bits")
    return classes
