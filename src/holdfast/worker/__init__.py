"""The process that holds leases: claim, brief, execute, settle; and the proof that it lives."""
