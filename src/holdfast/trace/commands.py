"""The command line over a trace: one table of verbs, used alone and as `holdfast trace`.

Owns arguments and the words printed. Does not own rows (`read`), reports or formats. Results go to
the given output and nothing else to stdout; a machine without a trace gets a hint, not an error.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from holdfast.trace import read, report
from holdfast.trace.events import KINDS, Event
from holdfast.trace.switch import file_of

EXIT_FAILED = 1
EXIT_USAGE = 2
POLL_S = 0.25
SESSIONS_MAX = 50
_TABLE_POLLS_MAX = 20  # a file may be seen before its tables are
_SEEN_MAX = 500

Arguments = dict[str, dict[str, Any]]  # of a verb, each with what `add_argument` is given


class Output(Protocol):
    """Where a command's words go; Holdfast's console has this shape."""

    json: bool

    def say(self, text: str = "") -> None: ...

    def emit(self, value: dict[str, Any], /) -> None: ...

    def note(self, text: str) -> None: ...


@dataclass(frozen=True)
class Verb:
    """One row of the table."""

    name: str
    summary: str
    run: Callable[[sqlite3.Connection, argparse.Namespace, Output], int]
    arguments: Arguments


def configure(parser: argparse.ArgumentParser) -> None:
    """Add every verb; `parser` already has `--json` or does not want it. Without one: sessions."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    parser.set_defaults(verb=VERBS[0].name, file=None, limit=SESSIONS_MAX)
    for row in VERBS:
        verb = verbs.add_parser(row.name, help=row.summary, description=row.summary)
        verb.add_argument("--json", action="store_true", default=argparse.SUPPRESS)
        verb.add_argument("--file", type=Path, help="the trace (AGENTLOG_FILE, else agentlog.db)")
        for name, how in row.arguments.items():
            verb.add_argument(name, **how)


def run(
    arguments: argparse.Namespace, output: Output, *, step: report.Step = lambda event: {}
) -> int:
    """Run one verb; returns the exit code. `step` is for `report.context`."""
    arguments.step = step
    verb = next(row for row in VERBS if row.name == arguments.verb)
    path = arguments.file or file_of(os.environ)
    try:
        if getattr(arguments, "follow", False):
            _await(path, output)
        with _open(path) as connection:
            return verb.run(connection, arguments, output)
    except sqlite3.Error as error:
        if path.exists():
            output.note(f"{path} is not a trace: {error}")
            return EXIT_FAILED
        output.note(
            f"there is no trace at {path} yet\n"
            "  AGENTLOG=true python -m holdfast.trace run app.py   makes one"
        )
        return 0


def _await(path: Path, output: Output) -> None:
    """Wait for a trace that is not there yet: who follows may be first."""
    if not path.exists():
        output.note(f"waiting for a trace at {path}")
    while not path.exists():
        time.sleep(POLL_S)
    for _ in range(_TABLE_POLLS_MAX):
        try:
            with _open(path):
                return
        except sqlite3.OperationalError:
            time.sleep(POLL_S)


@contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    connection = read.open_file(path)
    try:
        connection.execute("SELECT 1 FROM agent_sessions LIMIT 1")
        yield connection
    finally:
        connection.close()


# --- the verbs ------------------------------------------------------------------------------------


def _sessions(connection: sqlite3.Connection, arguments: argparse.Namespace, output: Output) -> int:
    for row in read.sessions(connection, arguments.limit):
        if output.json:
            output.emit(row)
            continue
        end = "open" if row["end_ts"] is None else f"{(row['end_ts'] - row['start_ts']) / 1000:g} s"
        name, task = (" ".join(row[key].split()) for key in ("agent_name", "task"))
        output.say(
            f"{row['session_id']}  {end:>9}  {row['total_tokens']:>9} tokens  {name}  {task}"
        )
    return 0


def _events(connection: sqlite3.Connection, arguments: argparse.Namespace, output: Output) -> int:
    found = read.events(
        connection, session_id=arguments.session, kind=arguments.type, limit=arguments.limit
    )
    for event in found:
        _print_event(event, output)
    return 0


def _tail(connection: sqlite3.Connection, arguments: argparse.Namespace, output: Output) -> int:
    seen: dict[Any, None] = {}
    fresh = read.newest(connection, arguments.limit, arguments.session)
    while True:
        for event in fresh:
            _print_event(event, output)
            seen[event.id] = None
        if not arguments.follow:
            return 0
        time.sleep(POLL_S)
        # Two processes may commit out of order, so a little of what was seen is read again.
        while len(seen) > _SEEN_MAX:
            del seen[next(iter(seen))]
        floor = min(seen) if seen else None
        after = read.events(connection, session_id=arguments.session, after=floor)
        fresh = [event for event in after if event.id not in seen]


def _context(connection: sqlite3.Connection, arguments: argparse.Namespace, output: Output) -> int:
    text = report.context(
        connection, arguments.tokens, session_id=arguments.session, step=arguments.step
    )
    _print_text(text, output)
    return 0


def _why(connection: sqlite3.Connection, arguments: argparse.Namespace, output: Output) -> int:
    """Explain one failure: `failed` for the latest, an event id, or `path[:line]`."""
    failure = None
    if arguments.what != "failed":
        failure = read.event(connection, arguments.what)
        if failure is None:
            file, _, line = arguments.what.rpartition(":")
            place = (file, int(line)) if file and line.isdecimal() else (arguments.what, None)
            failure = next(iter(report.failures_at(connection, *place)), None)
        if failure is None or failure.kind != "failure":
            output.note(f"no failure is recorded for {arguments.what}")
            return EXIT_FAILED
    text = report.context(
        connection,
        arguments.tokens,
        session_id=arguments.session,
        failure=failure,
        step=arguments.step,
    )
    _print_text(text, output)
    return 0


def _tokens(connection: sqlite3.Connection, arguments: argparse.Namespace, output: Output) -> int:
    session_id = None if arguments.all else arguments.session
    if session_id == "":
        newest = read.sessions(connection, 1)
        session_id = newest[0]["session_id"] if newest else ""
    summary = read.token_summary(connection, session_id)
    if output.json:
        output.emit(summary)
        return 0
    for model, row in summary["models"].items():
        output.say(
            f"{model}  {row['calls']} calls  {row['tokens_in']} in  {row['tokens_out']} out"
            f"  {row['tokens_total']} in all" + _uncertain(row)
        )
    cost = summary["cost_usd"]
    money = "unknown price" if cost is None else f"${cost:.6f}"
    output.say(f"{summary['total_tokens']} tokens in all, {money}" + _uncertain(summary))
    return 0


def _export(connection: sqlite3.Connection, arguments: argparse.Namespace, output: Output) -> int:
    from holdfast.trace import export  # noqa: PLC0415  the other verbs do not need the formats

    lines = export.lines(connection, arguments.format, session_id=arguments.session)
    try:
        count = export.write(lines, arguments.output)
    except OSError as error:
        if arguments.output is None:
            raise
        output.note(f"cannot write {arguments.output}: {error.strerror}")
        return EXIT_FAILED
    if arguments.output is not None:
        output.note(f"wrote {count} lines to {arguments.output}")
    return 0


def _sync(connection: sqlite3.Connection, arguments: argparse.Namespace, output: Output) -> int:
    from holdfast.trace import d1, otlp  # noqa: PLC0415  the other verbs do not need the network

    sync = otlp.sync if arguments.to == "otlp" else d1.sync
    done = sync(connection, os.environ)
    if output.json:
        output.emit({"type": "sync", "to": arguments.to, "sent": done.sent, "error": done.error})
    if done.error:
        output.note(f"not synced: {done.error}")
        return EXIT_FAILED
    output.say(f"sent {done.sent} rows to {arguments.to}")
    return 0


def _print_event(event: Event, output: Output) -> None:
    if output.json:
        output.emit(event.as_json())
    else:
        output.say(f"{report.when(event.ts)}  {event.id}  {event.kind:<11}  {report.line(event)}")


def _print_text(text: str, output: Output) -> None:
    if output.json:
        output.emit({"type": "context", "text": text})
    else:
        output.say(text.rstrip("\n"))


def _uncertain(sums: dict[str, Any]) -> str:
    unknown, estimated = sums["unknown_calls"], sums["estimated_calls"]
    parts = [f"{unknown} calls did not say"] if unknown else []
    parts += [f"{estimated} calls are estimated"] if estimated else []
    return f"  ({', '.join(parts)})" if parts else ""


_SESSION: Arguments = {"--session": {"default": "", "help": "one session only"}}
_TOKENS: Arguments = {"--tokens": {"type": int, "default": 800, "help": "size of the answer"}}
_TYPE: Arguments = {"--type": {"choices": KINDS, "help": "one type of event only"}}
_FOLLOW: Arguments = {"--follow": {"action": "store_true", "help": "go on until interrupted"}}
_WHAT: Arguments = {
    "what": {"nargs": "?", "default": "failed", "help": "failed, an event id, path[:line]"}
}
_ALL: Arguments = {"--all": {"action": "store_true", "help": "all sessions together"}}
_FORMAT: Arguments = {"--format": {"choices": ("jsonl", "chrome", "otlp"), "default": "jsonl"}}
_OUTPUT: Arguments = {"--output": {"type": Path, "help": "a file; it appears whole or not at all"}}
_TO: Arguments = {"--to": {"choices": ("d1", "otlp"), "default": "d1"}}


def _limit(default: int) -> Arguments:
    return {"--limit": {"type": int, "default": default, "help": "how many at most"}}


_EXPLAIN = "what an agent should know of the latest failure"
VERBS = (
    Verb("sessions", "list the newest sessions", _sessions, _limit(SESSIONS_MAX)),
    Verb("events", "list events in order", _events, _SESSION | _TYPE | _limit(-1)),
    Verb(
        "tail", "the newest events; --follow waits for more", _tail, _SESSION | _FOLLOW | _limit(20)
    ),
    Verb("context", _EXPLAIN, _context, _SESSION | _TOKENS),
    Verb("why", "explain one failure", _why, _SESSION | _WHAT | _TOKENS),
    Verb("tokens", "tokens and money of one session by model", _tokens, _SESSION | _ALL),
    Verb(
        "export",
        "write JSON lines, a Chrome trace or OTLP/JSON",
        _export,
        _SESSION | _FORMAT | _OUTPUT,
    ),
    Verb("sync", "send sessions and events to D1 or an OTLP collector", _sync, _SESSION | _TO),
)
