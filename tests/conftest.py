"""What every test shares: properties are judged by what they find, never by how long it took.

Whoever starts the tests in the background may have them inherit an ignored Ctrl-C, which a program
under test would inherit in turn: it gets its usual meaning back.
"""

import signal

from hypothesis import settings

signal.signal(signal.SIGINT, signal.default_int_handler)
settings.register_profile("no deadlines", deadline=None)
settings.load_profile("no deadlines")
