"""PTC-Lisp beside its peers: python benchmarks/lisp.py [--json] [--alone].

The three programs of the design, host calls, cold and warm starts, suspend and resume, translation.
`--json` prints one object {"machine", "commit", "rows": [{"system", "metric", "value", "unit"}]}.
`--alone` leaves the peers out. Medians in milliseconds, with 10th and 90th percentile.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.lang.api import Limits, Result
from holdfast.lang.compiler import CodeCache, compile_source
from holdfast.lang.pool import SandboxPool
from holdfast.lang.portable import Granted
from holdfast.lang.recorder import FileJournal, Recorder
from holdfast.lang.run import run
from measure import Row, peers, report, row, timed

ROWS = tuple(
    {"id": i, "region": f"r{i % 7}", "amount": i * 3 % 101, "active": i % 3 != 0}
    for i in range(1000)
)
PLAIN = {"rows": ROWS}
GRANTED = Granted(PLAIN)
PIPELINE = """
(->> data/rows
     (filter :active)
     (group-by :region)
     (map (fn [[region rows]] [region (reduce + (map :amount rows))]))
     (into {}))
"""
LOOP = "(loop [i 0 total 0] (if (< i 1000000) (recur (inc i) (+ total i)) total))"
FIB = "(defn fib [n] (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))) (fib 22)"
HOST = "(doseq [i (range 1000)] (tool/echo {:i i}))"
CALLS = """
(def first-part (reduce (fn [sum i] (+ sum (:i (tool/echo {:i i})))) 0 (range 30)))
(def branches (pmap (fn [i] (:i (tool/echo {:i i}))) (range 10)))
(def charged (task "charge" (:i (tool/echo {:i 1}))))
(+ first-part charged (reduce + branches)
   (reduce (fn [sum i] (+ sum (:i (tool/echo {:i i})))) 0 (range 9)))
"""
SUM_OF_CALLS = sum(range(30)) + 1 + sum(range(10)) + sum(range(9))
LIMITS = Limits(wall_s=120, fuel=10**9, loop_iterations=10**8, memory_bytes=500_000_000)
TOOLS = ["echo"]
SYSTEM = "holdfast"
CACHE = CodeCache()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--alone", action="store_true", help="without the peers")
    arguments = parser.parse_args()
    rows = [*programs(), *translation(), *pool(), *journal(), *process()]
    if not arguments.alone:
        rows += peers("lisp_peers.py")
    sys.stdout.write(report(rows, as_json=arguments.json) + "\n")


def programs() -> list[Row]:
    """In process, translated once, data resident as in the peers' rows; copied is a plain dict."""
    return [
        timed(SYSTEM, "pipeline_ms", lambda: check(PIPELINE), rounds=100),
        timed(SYSTEM, "pipeline_copied_ms", lambda: check(PIPELINE, PLAIN), rounds=100),
        timed(SYSTEM, "loop_ms", lambda: check(LOOP), rounds=5),
        timed(SYSTEM, "fib_ms", lambda: check(FIB), rounds=20),
    ]


def check(source: str, context: Mapping[str, Any] = GRANTED) -> Result:
    return sure(run(source, context=context, limits=LIMITS, cache=CACHE))


def sure(result: Result) -> Result:
    """A program that failed is no measurement."""
    if result.error is not None:
        raise SystemExit(result.error.render())
    return result


def translation() -> list[Row]:
    """A program of 100 lines, another each time, so that no cache answers."""
    versions = iter(range(10**9))

    def once() -> object:
        number = next(versions)
        lines = []
        for i in range(20):
            lines += [
                f"(defn step-{i} [rows limit]",
                f"  (let [kept (filter (fn [row] (> (:amount row) {i + number})) rows)",
                "        total (reduce + (map :amount kept))]",
                "    (if (> total limit)",
                f'      {{:step {i} :total total :note "over"}} {{:step {i} :total 0}})))',
            ]
        return compile_source("\n".join(lines), limits=LIMITS)

    return [timed(SYSTEM, "translate_100_lines_ms", once, rounds=10)]


def pool() -> list[Row]:
    def cold() -> None:
        with SandboxPool(1) as started:
            sure(started.run("(+ 1 2)"))

    rows = [timed(SYSTEM, "cold_start_ms", cold, rounds=10)]
    with SandboxPool(1, LIMITS) as single:

        def warm() -> object:
            return sure(single.run("(+ 1 2)", scope="agent"))

        def fresh() -> object:
            return sure(single.run("(+ 1 2)"))

        def calls() -> object:
            return sure(single.run(HOST, host=Recorder({}, host_tools()), tools=TOOLS))

        def pipeline() -> object:
            return sure(single.run(PIPELINE, context={"rows": ROWS}, scope="agent"))

        warm()
        rows.append(timed(SYSTEM, "warm_call_ms", warm, rounds=500))
        rows.append(timed(SYSTEM, "fresh_call_ms", fresh, rounds=100))
        rows.append(timed(SYSTEM, "host_call_ms", calls, rounds=10, per=1000))
        rows.append(timed(SYSTEM, "pipeline_isolated_ms", pipeline, rounds=50))
    with SandboxPool(2, LIMITS) as waiting:

        def ready() -> object:
            return sure(waiting.run("(+ 1 2)"))

        def pause() -> None:
            waiting.standing()
            time.sleep(0.01)

        ready()
        rows.append(timed(SYSTEM, "ready_call_ms", ready, rounds=100, prepare=pause))
    return rows


def host_tools() -> dict[str, Any]:
    return {"echo": lambda args: args}


def journal() -> list[Row]:
    """Crash at the last of 50 calls and run again over the journal: the time to that call."""
    rows = []
    with SandboxPool(1, LIMITS) as single, tempfile.TemporaryDirectory() as folder:
        for metric, runner in (("resume_ms", single.run), ("resume_in_process_ms", run)):
            taken = []
            for number in range(20):
                path = Path(folder) / f"{metric}-{number}"
                crash(path)
                time.sleep(0.02)  # the pool's worker is ready again
                reached = list[float]()

                def echo(args: Any, reached: list[float] = reached) -> Any:
                    reached.append(time.perf_counter())
                    return args

                start = time.perf_counter()
                host = Recorder(FileJournal(path), {"echo": echo})
                result = runner(CALLS, host=host, limits=LIMITS, tools=TOOLS)
                if result.value != SUM_OF_CALLS or len(reached) != 1:
                    raise SystemExit(f"the resumed program went wrong: {result}")
                taken.append((reached[0] - start) * 1e3)
            rows.append(row(SYSTEM, metric, taken))
    return rows


class Crash(BaseException):
    """Stands for the end of the process at the last call."""


def crash(path: Path) -> None:
    done: list[int] = []

    def echo(args: Any) -> Any:
        if len(done) == 49:
            raise Crash
        done.append(1)
        return args

    host = Recorder(FileJournal(path), {"echo": echo})
    try:
        run(CALLS, host=host, limits=LIMITS, tools=TOOLS)
    except Crash:
        return
    raise SystemExit("the program did not reach its last call")


def process() -> list[Row]:
    """The whole command line, for what a person waits for."""
    command = [sys.executable, "-m", "holdfast", "lisp", "eval", "-e", "(+ 1 2)"]
    return [
        timed(
            SYSTEM,
            "command_line_ms",
            lambda: subprocess.run(command, check=True, capture_output=True),
            rounds=5,
        )
    ]


if __name__ == "__main__":
    main()
