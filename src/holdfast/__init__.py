"""Holdfast does work with language models and does not let go of it.

Importing the package loads nothing: the public names below are resolved on first use, so that
`import holdfast` stays cheap and the islands (`holdfast.lang`, `holdfast.trace`) work alone.
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing `typing` for it would take longer than all the rest
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "App": "holdfast.app",
    "build": "holdfast.app",
    "Settings": "holdfast.config",
    "HoldfastError": "holdfast.errors",
}

__all__ = ["App", "HoldfastError", "Settings", "__version__", "build"]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PUBLIC[name]), name)
