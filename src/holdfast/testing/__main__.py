"""`python -m holdfast.testing serve SCRIPT --log FILE [--port N] [--strict]`: the server, alone.

Prints one JSON line with its URL and process id when it listens, then serves until a signal ends
it. Owns the command line only.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.testing.server import ScriptedServer


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m holdfast.testing", description=__doc__)
    verbs = parser.add_subparsers(required=True)
    serve = verbs.add_parser("serve", help="serve a script on 127.0.0.1")
    serve.add_argument("script", type=Path)
    serve.add_argument("--log", type=Path, help="append one JSON line per chat request")
    serve.add_argument("--port", type=int, default=0, help="0 takes a free one")
    serve.add_argument("--strict", action="store_true", help="demand the official clients' types")
    arguments = parser.parse_args(argv)
    # Blocked before any thread starts, so that only `sigwait` below takes them.
    ending = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    try:
        server = ScriptedServer(
            arguments.script, log=arguments.log, port=arguments.port, strict=arguments.strict
        )
    except HoldfastError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    with server:
        sys.stdout.write(json.dumps({"url": server.url, "pid": os.getpid()}) + "\n")
        sys.stdout.flush()
        signal.sigwait(ending)
    return 0


if __name__ == "__main__":
    sys.exit(main())
