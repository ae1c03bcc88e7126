"""What every test shares: properties are judged by what they find, never by how long it took.

They try the same examples each time, so that a red run is the doing of what was changed;
`make search` tries others, and what it finds becomes a test of its own.

Whoever starts the tests in the background may have them inherit an ignored Ctrl-C, which a program
under test would inherit in turn: it gets its usual meaning back.
"""

import os
import signal

from hypothesis import settings

signal.signal(signal.SIGINT, signal.default_int_handler)
settings.register_profile("same", deadline=None, derandomize=True, database=None)
settings.register_profile("search", deadline=None, max_examples=2_000)
settings.load_profile(os.environ.get("HOLDFAST_EXAMPLES", "same"))
