"""Real peers for tests and the demo: a scripted model server over HTTP."""
