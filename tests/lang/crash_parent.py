"""A parent that ends by SIGKILL at a given call: run by test_crash.py as a process of its own."""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from holdfast.lang.pool import SandboxPool
from holdfast.lang.recorder import FileJournal, Recorder

CALLS = 50
PROGRAM = """
(defn charge [order] (:sum (tool/charge {:order order})))
(def first-part (reduce (fn [sum i] (+ sum (charge i))) 0 (range 30)))
(def branches (pmap charge (range 30 40)))
(def once (task "once" (charge 40)))
(+ first-part once (reduce + branches)
   (reduce (fn [sum i] (+ sum (charge i))) 0 (range 41 50)))
"""
PROMISED = sum(order * 7 for order in range(CALLS))


def charge(log: Path, args: dict[str, Any]) -> dict[str, int]:
    """The effect: one line in the log, safe before the answer is given."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(file, f"{args['order']}\n".encode())
        os.fdatasync(file)
    finally:
        os.close(file)
    return {"sum": args["order"] * 7}


def main(journal: str, log: str, last: str, when: str) -> None:
    """Run the program and die at the call numbered `last`, before or after its effect."""
    counting, started = threading.Lock(), list[int]()

    def dying(args: dict[str, Any]) -> Any:
        with counting:
            started.append(1)
            mine = len(started) == int(last) + 1
        if mine and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = charge(Path(log), args)
        if mine:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    with SandboxPool(1) as pool:
        host = Recorder(FileJournal(journal), {"charge": dying})
        result = pool.run(PROGRAM, host=host, tools=["charge"])
        raise SystemExit(f"the program ended by itself: {result}")


if __name__ == "__main__":
    main(*sys.argv[1:])
