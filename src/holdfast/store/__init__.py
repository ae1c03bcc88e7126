"""Schema, named queries, the one writer, the only function that writes a state, blobs, backups."""

from holdfast.store.database import open_reader, open_store, translated
from holdfast.store.tx import Row, Tx, transition
from holdfast.store.writer import WAIT_S, Turnstile, Writer

__all__ = [
    "WAIT_S",
    "Row",
    "Turnstile",
    "Tx",
    "Writer",
    "open_reader",
    "open_store",
    "transition",
    "translated",
]
