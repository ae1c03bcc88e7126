"""Schema, named queries, the one writer, the only function that writes a state, blobs, backups."""

from holdfast.store.database import Translated, open_reader, open_store
from holdfast.store.tx import Row, Tx, transition
from holdfast.store.writer import WAIT_S, Turnstile, Writer

__all__ = [
    "WAIT_S",
    "Row",
    "Translated",
    "Turnstile",
    "Tx",
    "Writer",
    "open_reader",
    "open_store",
    "transition",
]
