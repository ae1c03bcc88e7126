"""A person's own pager: long text is handed to it, and nothing else ever is.

The pager is a program of the person's choice, started without a shell, as git starts it. Text must
be safe for a terminal before it comes here, colours included.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess

DEFAULT = "less"
# F: leave at once what fits on the screen; R: show colours; X: leave the text where it is.
_LESS = "FRX"


def paged(text: str) -> bool:
    """Show a text through the pager; False when there is none, and the caller writes it itself."""
    try:
        words = shlex.split(os.environ.get("PAGER", DEFAULT))
    except ValueError:  # an open quotation
        return False
    program = shutil.which(words[0]) if words else None
    if program is None or words == ["cat"]:
        return False
    environment = {"LESS": _LESS, **os.environ}
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the pager's own business
    try:
        subprocess.run(  # noqa: S603  the person's own pager; arguments are a list
            [program, *words[1:]],
            input=text.encode(errors="replace"),
            env=environment,
            check=False,
        )
    except OSError:
        return False
    finally:
        signal.signal(signal.SIGINT, before)
    return True
