"""The child process that matches a regular expression against texts, so that it can be killed.

Run as a script by `search`: a hostile expression may take exponential time, which no thread can
stop. Reads JSON lines: first `{"pattern", "results_max", "memory_bytes"}`, then one
`{"path", "text"}` per file. Writes `{"error"}`, or one `{"path", "line", "text"}` per line that
matches. Standard library only; it is started without site packages and imports nothing of ours.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from collections.abc import Iterable
from typing import IO

_SHOWN_MAX = 300


def matching(lines: Iterable[str], out: IO[str]) -> None:
    """Answer the questions on `lines`; ends after `results_max` matches."""
    source = iter(lines)
    order = json.loads(next(source))
    if order["memory_bytes"]:
        resource.setrlimit(resource.RLIMIT_AS, (order["memory_bytes"], order["memory_bytes"]))
    try:
        pattern = re.compile(order["pattern"])
    except (re.error, OverflowError, RecursionError) as error:
        out.write(json.dumps({"error": str(error)}) + "\n")
        return
    left = order["results_max"]
    for question in source:
        file = json.loads(question)
        for number, line in enumerate(file["text"].split("\n"), 1):
            found = pattern.search(line)
            if found is None:
                continue
            start = max(0, found.start() - _SHOWN_MAX // 3) if len(line) > _SHOWN_MAX else 0
            row = {"path": file["path"], "line": number, "text": line[start : start + _SHOWN_MAX]}
            out.write(json.dumps(row) + "\n")
            left -= 1
            if left == 0:
                return


if __name__ == "__main__":
    matching(sys.stdin, sys.stdout)
