"""What a trace costs: calls and failures recorded, off and on, and `why` on a million events.

Run with the project's own Python: `.venv/bin/python benchmarks/trace.py [--json]`. Peers are
measured in the same run, each in a process of its own, if `benchmarks/.peers` exists
(`benchmarks/peers-trace.txt` says how). Each number is a median of rounds after one warm-up, short
ones, so that another program's turn on the processor falls between them; `_low` and `_high` beside
it are the 5th and 95th of a hundred. Files are on this machine's disk.

on_us: one model call with a prompt of 120 and a reply of 60 characters, written so that a kill of
the process loses nothing (peers: handed to the operating system). failure_us: one exception with
its local values. off_us: the same call while off. import_off_ms: the import while off.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import commit, machine

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PEERS = HERE / ".peers" / "bin" / "python"
ROUNDS = 200
CALLS = 25
SLOW_ROUNDS = 21
EVENTS = 1_000_000
SESSIONS = 1_000
PROMPT = (
    "Find out why the last line of the file is empty, then mend the parser and run the tests."
    " Answer in one sentence, please."
)
REPLY = "The parser stopped at the first empty line; mended, tests pass."

Row = dict[str, Any]


def per_call_us(
    work: Callable[[], object], calls: int = CALLS, rounds: int = ROUNDS
) -> tuple[float, float, float]:
    """Median, 5th and 95th percentile of the rounds, in µs a call."""
    values = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        for _ in range(calls):
            work()
        values.append((time.perf_counter() - start) / calls * 1e6)
    return spread(values[1:])


def spread(values: list[float]) -> tuple[float, float, float]:
    cuts = statistics.quantiles(values, n=20, method="inclusive")
    return statistics.median(values), cuts[0], cuts[-1]


def in_ms(values: tuple[float, float, float]) -> tuple[float, float, float]:
    median, low, high = (value / 1000 for value in values)
    return median, low, high


def rows_of(system: str, metric: str, unit: str, values: tuple[float, float, float]) -> list[Row]:
    names = (metric, f"{metric}_low", f"{metric}_high")
    return [
        {"system": system, "metric": name, "value": round(value, 3), "unit": unit}
        for name, value in zip(names, values, strict=True)
    ]


def row(system: str, metric: str, unit: str, value: float) -> Row:
    return {"system": system, "metric": metric, "value": round(value, 3), "unit": unit}


def a_failure() -> BaseException:
    def total(order: dict[str, Any]) -> float:
        amount, currency = 0.0, "EUR"
        for item in order["items"]:
            amount += item["n"] * item["price"]
        return amount if currency else 0

    try:
        total({"id": 7, "items": [{"n": 2, "price": 3}, {"n": 1, "price": None}]})
    except TypeError as error:
        return error
    raise AssertionError("it cannot be computed")


# --- holdfast -------------------------------------------------------------------------------------


def holdfast(directory: Path) -> list[Row]:
    from holdfast import trace

    os.environ.pop("AGENTLOG", None)
    trace.forget_switch()

    def call() -> object:
        return trace.log_llm_call(
            "gpt-x", tokens_in=120, tokens_out=60, duration_ms=900, prompt=PROMPT, response=REPLY
        )

    found = rows_of("holdfast", "off_us", "us", per_call_us(call, 1000))
    path = directory / "holdfast.db"
    os.environ.update({"AGENTLOG": "true", "AGENTLOG_FILE": str(path)})
    trace.forget_switch()
    trace.start_session("bench", "measure")
    found += rows_of("holdfast", "on_us", "us", per_call_us(call))
    trace.process().sink.close()
    size = path.stat().st_size
    found.append(row("holdfast", "bytes_per_event", "B", size / (CALLS * (ROUNDS + 1))))
    # Each is recorded once; raising them is not part of the measurement.
    errors = [a_failure() for _ in range(5 * (ROUNDS + 1))]
    took = per_call_us(lambda: trace.log_failure(errors.pop()), 5)
    found += rows_of("holdfast", "failure_us", "us", took)
    trace.forget_switch()
    os.environ["AGENTLOG_BUFFER_SIZE"] = "16"
    os.environ["AGENTLOG_FILE"] = str(directory / "buffered.db")
    trace.start_session("bench", "measure")
    found += rows_of("holdfast", "on_buffer16_us", "us", per_call_us(call))
    trace.forget_switch()
    for name in ("AGENTLOG", "AGENTLOG_FILE", "AGENTLOG_BUFFER_SIZE"):
        del os.environ[name]
    return found


def why(directory: Path) -> list[Row]:
    """`why failed` on a store of a million events: the answer, and the whole process around it."""
    from holdfast.trace import read, report
    from holdfast.trace.events import compact
    from holdfast.trace.store import Ids, connect, to_json

    path = directory / "million.db"
    connection = connect(path)
    ids = Ids()
    call = to_json(compact("llm_call", {"model": "m", "tokens_in": 120, "tokens_out": 60}))
    failure = to_json(
        compact(
            "failure",
            {
                "error": {"type": "TypeError", "msg": "unsupported operand"},
                "location": {"file": "/app.py", "line": 7, "function": "total"},
                "source": "amount += item['n'] * item['price']",
                "locals": {"item": {"type": "int", "value": 5}},
            },
        )
    )
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("BEGIN")
    connection.executemany(
        "INSERT INTO agent_sessions VALUES (?, ?, NULL, 'bench', 'task', 0)",
        ((f"s{number:05}", number) for number in range(SESSIONS)),
    )
    each = EVENTS // SESSIONS
    connection.executemany(
        "INSERT INTO events VALUES (?, ?, ?, ?, ?)",
        (
            (
                ids.new(),
                f"s{number // each:05}",
                number,
                *(("failure", failure) if number % 997 == 0 else ("llm_call", call)),
            )
            for number in range(EVENTS)
        ),
    )
    connection.execute("COMMIT")
    connection.close()

    def answer() -> None:
        reader = read.open_file(path)
        assert "TypeError" in report.context(reader, 800)
        reader.close()

    values = per_call_us(answer, 1)
    found = rows_of("holdfast", "why_ms", "ms", in_ms(values))
    command = [sys.executable, "-m", "holdfast.trace", "why", "failed", "--file", str(path)]
    whole = per_call_us(
        lambda: subprocess.run(command, check=True, capture_output=True), 1, SLOW_ROUNDS
    )
    found += rows_of("holdfast", "why_process_ms", "ms", in_ms(whole))
    return found


def imports() -> list[Row]:
    """The import while off, timed by a bare interpreter itself, each time in a new one."""
    environ = {name: value for name, value in os.environ.items() if name != "AGENTLOG"}
    text = (
        f"import sys, time; sys.path.insert(0, {str(ROOT / 'src')!r}); start = time.perf_counter();"
        " import holdfast.trace; print(time.perf_counter() - start)"
    )
    command = [sys.executable, "-I", "-S", "-c", text]
    values = [
        float(subprocess.run(command, check=True, env=environ, capture_output=True).stdout) * 1000
        for _ in range(SLOW_ROUNDS)
    ]
    return rows_of("holdfast", "import_off_ms", "ms", spread(values))


# --- peers ----------------------------------------------------------------------------------------


def peer_structlog(directory: Path) -> list[Row]:
    import structlog

    path = directory / "structlog.jsonl"
    stream = path.open("a", buffering=1)
    structlog.configure(
        processors=[
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.add_log_level,
            structlog.processors.ExceptionRenderer(
                structlog.tracebacks.ExceptionDictTransformer(show_locals=True, max_frames=2)
            ),
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.WriteLoggerFactory(file=stream),
    )
    log = structlog.get_logger()
    fields = {"model": "gpt-x", "tokens_in": 120, "tokens_out": 60, "duration_ms": 900}
    found = rows_of(
        "structlog",
        "on_us",
        "us",
        per_call_us(lambda: log.info("llm_call", prompt=PROMPT, response=REPLY, **fields)),
    )
    events = CALLS * (ROUNDS + 1)
    found.append(row("structlog", "bytes_per_event", "B", path.stat().st_size / events))
    error = a_failure()
    took = per_call_us(lambda: log.error("failure", exc_info=error), 5)
    return [*found, *rows_of("structlog", "failure_us", "us", took)]


def peer_sentry(directory: Path) -> list[Row]:
    import sentry_sdk
    from sentry_sdk.transport import Transport

    path = directory / "sentry.jsonl"
    stream = path.open("ab", buffering=0)

    class ToFile(Transport):
        def capture_envelope(self, envelope: Any) -> None:
            stream.write(envelope.serialize() + b"\n")

    sentry_sdk.init(
        dsn="http://key@127.0.0.1:9/1",
        transport=ToFile,
        include_local_variables=True,
        default_integrations=False,
    )
    error = a_failure()
    calls = 5
    values = per_call_us(lambda: sentry_sdk.capture_exception(error), calls)
    found = rows_of("sentry-sdk", "failure_us", "us", values)
    size = path.stat().st_size / (calls * (ROUNDS + 1))
    return [*found, row("sentry-sdk", "bytes_per_event", "B", size)]


def peer_otel(directory: Path) -> list[Row]:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

    path = directory / "otel.jsonl"
    stream = path.open("a", buffering=1)
    provider = TracerProvider()
    exporter = ConsoleSpanExporter(out=stream, formatter=lambda span: span.to_json(None) + "\n")
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("bench")

    def call() -> None:
        with tracer.start_as_current_span("chat gpt-x") as span:
            span.set_attribute("gen_ai.operation.name", "chat")
            span.set_attribute("gen_ai.usage.input_tokens", 120)
            span.set_attribute("gen_ai.usage.output_tokens", 60)
            span.set_attribute("gen_ai.input.messages", PROMPT)
            span.set_attribute("gen_ai.output.messages", REPLY)

    found = rows_of("otel-sdk", "on_us", "us", per_call_us(call))
    events = CALLS * (ROUNDS + 1)
    found.append(row("otel-sdk", "bytes_per_event", "B", path.stat().st_size / events))
    error = a_failure()

    def fail() -> None:
        with tracer.start_as_current_span("failed") as span:
            span.record_exception(error)

    return [*found, *rows_of("otel-sdk", "failure_us", "us", per_call_us(fail, 100))]


PEER_RUNS = {"structlog": peer_structlog, "sentry": peer_sentry, "otel": peer_otel}


def peers() -> list[Row]:
    if not PEERS.exists():
        sys.stderr.write("no benchmarks/.peers: the peers are left out (see peers-trace.txt)\n")
        return []
    found: list[Row] = []
    for name in PEER_RUNS:
        done = subprocess.run(
            [PEERS, __file__, "--peer", name], capture_output=True, text=True, check=True
        )
        found += json.loads(done.stdout)
    return found


# --- the report -----------------------------------------------------------------------------------


def table(rows: list[Row]) -> str:
    """One line per number, its spread beside it."""
    by = {(item["system"], item["metric"]): item for item in rows}
    lines = ["| System | Metric | Median | Spread | Unit |", "|---|---|---:|---:|---|"]
    for (system, metric), item in by.items():
        if metric.endswith(("_low", "_high")):
            continue
        low, high = (by.get((system, f"{metric}_{end}")) for end in ("low", "high"))
        spread = f"{low['value']:g} to {high['value']:g}" if low and high else ""
        lines.append(f"| {system} | {metric} | {item['value']:g} | {spread} | {item['unit']} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--peer", choices=PEER_RUNS, help="measure one peer, for the main process")
    arguments = parser.parse_args()
    where = machine()
    with tempfile.TemporaryDirectory(prefix="trace-bench-") as scratch:
        directory = Path(scratch)
        if arguments.peer:
            print(json.dumps(PEER_RUNS[arguments.peer](directory)))
            return 0
        rows = [*holdfast(directory), *imports(), *why(directory), *peers()]
    if arguments.json:
        print(json.dumps({"machine": where, "commit": commit(), "rows": rows}, ensure_ascii=False))
    else:
        named = ", ".join(f"{name} {value}" for name, value in where.items())
        print(f"{named}, commit {commit()}\n\n{table(rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
