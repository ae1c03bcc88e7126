"""Care of the store.

holdfast check                    read the whole store and say whether it is sound
holdfast backup                   a checked copy, beside running work; the newest three are kept
holdfast restore [FILE]           put a checked copy back (default: the newest); the damaged
                                  store is moved aside, never deleted
"""

from __future__ import annotations

import argparse
from pathlib import Path

from holdfast.cli.common import add_place
from holdfast.cli.console import Console
from holdfast.config import load
from holdfast.errors import NotFound, Refused


def configure(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    if parser.prog.endswith("restore"):
        parser.add_argument("file", nargs="?", type=Path, help="the backup (default: the newest)")
        parser.add_argument("--dry-run", action="store_true", help="only say which")


def run(arguments: argparse.Namespace, console: Console) -> int:
    from holdfast.adapters.clock import SystemClock
    from holdfast.app import STORE_NAME
    from holdfast.app.goals import home_for
    from holdfast.store import care

    start = Path(arguments.repo).expanduser()
    settings = load(start, flags={"home": arguments.home})
    home = home_for(start, settings.home)
    store, folder = home / STORE_NAME, home / "backups"
    match arguments.command:
        case "check":
            return _check(store, console)
        case "backup":
            made = care.backup(store, folder, stamp_ms=SystemClock().now_ms())
            console.emit({"type": "backup", "file": str(made), "sound": True})
            console.say(f"sound, copied to {made}")
            return 0
        case _:
            return _restore(arguments, store, folder, console)


def _check(store: Path, console: Console) -> int:
    from holdfast.store import care

    if not store.exists():
        raise NotFound(f"there is no store at {store}")
    problems = care.check(store)
    console.emit({"type": "check", "sound": not problems, "problems": problems})
    for problem in problems:
        console.say(problem)
    console.say("the store is damaged: holdfast restore" if problems else "the store is sound")
    return 1 if problems else 0


def _restore(arguments: argparse.Namespace, store: Path, folder: Path, console: Console) -> int:
    from holdfast.adapters.clock import SystemClock
    from holdfast.store import care
    from holdfast.worker.liveness import workers

    known = care.backups(folder)
    source = arguments.file or (known[-1] if known else None)
    if source is None:
        raise NotFound(f"there is no backup in {folder}")
    busy = workers(store.parent)
    if busy:
        raise Refused(
            f"{busy[0]} works on this store; what it writes would be lost",
            hint="interrupt it with Ctrl-C, then restore",
            code="in_use",
        )
    aside = None
    if not arguments.dry_run:
        aside = care.restore(store, source, stamp_ms=SystemClock().now_ms())
    moved = str(aside) if aside else None
    names = {"file": str(source), "moved_aside": moved, "dry_run": arguments.dry_run}
    console.emit({"type": "restore", **names})
    console.say(f"{'would restore' if arguments.dry_run else 'restored'} {source}")
    if aside:
        console.say(f"the store before is at {aside}")
    return 0
