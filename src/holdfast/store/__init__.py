"""Schema, named queries, the one writer, the only function that writes a state, blobs, backups."""
