"""The process that holds leases: claim, brief, execute, settle."""
