"""What can go wrong, as a tree:

    GreenlabelError (a ValueError)
    ├── ParameterError     a parameter of the wrong type, out of range, or unknown by name
    ├── DataError          features that cannot be used: NaN, text, another width
    │   └── DataTypeError  features that are no numbers at all (a TypeError too)
    ├── LabelError         labels that cannot be used: none, a single class, another length
    ├── GraphError         a similarity matrix that is no graph, or a system that has no inverse
    ├── TableError         a table or file that cannot be read, written or understood
    │   └── ModelFileError a saved model that is corrupt, of another format, not sound, or none of ours
    ├── MemoryLimitError   a dense method asked for more memory than the machine has free
    ├── ClusterError       a Dask scheduler that does not answer
    └── MissingLibraryError  a library of an extra is not installed (an ImportError too)

    UnreachedWarning (a UserWarning)  many rows are in parts of the graph that hold no label

Every message says what came, what was needed and what to do.
"""


class GreenlabelError(ValueError):
    """Anything greenlabel refuses; catch this to catch them all."""


class ParameterError(GreenlabelError):
    """A parameter of the wrong type, out of range, or unknown by name."""


class DataError(GreenlabelError):
    """Features that cannot be used."""


class DataTypeError(DataError, TypeError):
    """Features that are no numbers at all."""


class LabelError(GreenlabelError):
    """Labels that cannot be used."""


class GraphError(GreenlabelError):
    """A similarity matrix that is no graph, or a graph on which the asked-for system has no inverse."""


class MemoryLimitError(GreenlabelError):
    """A dense method that would need more memory than is free."""


class TableError(GreenlabelError):
    """A table or file that cannot be read, written or understood."""


class ModelFileError(TableError):
    """A saved model that is corrupt, of another format, not sound, or none of ours."""


class ClusterError(GreenlabelError):
    """A Dask scheduler that does not answer."""


class UnreachedWarning(UserWarning):
    """Many rows are in parts of the graph that hold no label; a warning, not an error."""


class MissingLibraryError(GreenlabelError, ImportError):
    """A library that greenlabel needs for this one thing is not installed."""
