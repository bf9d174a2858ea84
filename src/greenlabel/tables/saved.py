"""Models as files: the feature steps and what answers for new rows need, in one file without a pickle.

    a zip archive:   greenlabel.json    format, version, target, classes, what means "no label"
                     model.skops        feature steps and classifier, as skops writes objects: data, no code

Loading builds objects of the types listed here and of no other, so a file from a stranger can do no more than that.
"""

import json
import warnings
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from greenlabel.errors import ModelFileError
from greenlabel.extras import requires
from greenlabel.tables.columns import TableFeatures
from greenlabel.tables.files import new_file

with requires("tables"):
    import skops.io

FORMAT = 1
FACTS, OBJECTS = "greenlabel.json", "model.skops"
# Types of these libraries, whose objects are data; of scikit-learn skops knows all but this one itself.
TRUSTED = ("greenlabel.", "skrub.", "polars.datatypes.", "scipy.sparse.", "sklearn.tree._tree.Tree")


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

        facts = {
            "format": FORMAT,
            "greenlabel": __version__,
            "target": self.target,
            "classes": self.classes,
            "unlabelled": self.unlabelled,
        }
        objects = {"features": self.features, "model": self.model.for_new_rows()}
        with new_file(path) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(FACTS, json.dumps(facts, ensure_ascii=False, indent=1))
            archive.writestr(OBJECTS, skops.io.dumps(objects, compression=zipfile.ZIP_DEFLATED, compresslevel=1))


def load_model(path: str | Path) -> SavedModel:
    """The model in a file; one that is torn, newer than this greenlabel, or none of ours is refused."""
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            facts = json.loads(archive.read(FACTS))
            check_format(path, facts)
            objects = trusted_objects(path, archive.read(OBJECTS))
            if not isinstance(objects["features"], TableFeatures):
                raise KeyError("features")  # a zip with the right names and something else in it
            return SavedModel(facts["target"], facts["classes"], **objects, unlabelled=facts.get("unlabelled", []))
    except FileNotFoundError:
        raise ModelFileError(f"{path} does not exist; give a file written by greenlabel label --save.") from None
    except (KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ModelFileError(
            f"{path} is no greenlabel model; give a file written by greenlabel label --save."
        ) from error
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise ModelFileError(
            f"{path} is torn, or no greenlabel model ({error}); save it anew by greenlabel label --save."
        ) from error


def check_format(path: Path, facts: dict[str, Any]) -> None:
    if facts["format"] > FORMAT:
        raise ModelFileError(
            f"{path} was written by greenlabel {facts['greenlabel']}, in format {facts['format']}; "
            f"this one reads up to format {FORMAT}: upgrade greenlabel."
        )


def trusted_objects(path: Path, data: bytes) -> dict[str, Any]:
    types = skops.io.get_untrusted_types(data=data)
    strange = [name for name in types if not name.startswith(TRUSTED)]
    if strange:
        raise ModelFileError(
            f"{path} holds objects of type {strange[0]}, which no greenlabel model does; do not use it."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # another version of scikit-learn: its parts used here are arrays
        return skops.io.loads(data, trusted=types)
