"""Models as files: the feature steps and what answers for new rows need, in one file without a pickle.

    a zip archive:   greenlabel.json    format, version, target, classes
                     model.skops        feature steps and classifier, as skops writes objects: data, no code

Loading builds objects of the types listed here and of no other, so a file from a stranger can do no more than that.
"""

import json
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from greenlabel.errors import ModelFileError
from greenlabel.extras import requires
from greenlabel.files import whole_file
from greenlabel.tables.columns import TableFeatures

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

    def save(self, path: Path) -> None:
        from greenlabel import __version__

        facts = {"format": FORMAT, "greenlabel": __version__, "target": self.target, "classes": self.classes}
        objects = {"features": self.features, "model": self.model.for_new_rows()}
        with whole_file(path) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
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
    except FileNotFoundError:
        raise ModelFileError(f"{path} does not exist; give a file written by greenlabel label --save.") from None
    except (KeyError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ModelFileError(
            f"{path} is no greenlabel model; give a file written by greenlabel label --save."
        ) from error
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise ModelFileError(
            f"{path} is torn, or no greenlabel model ({error}); save it anew by greenlabel label --save."
        ) from error
    return SavedModel(facts["target"], facts["classes"], objects["features"], objects["model"])


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
