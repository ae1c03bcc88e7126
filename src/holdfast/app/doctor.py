"""Doctor: what this machine and this store can do, each finding with its remedy.

A finding is `ok`, `warning` or `problem`; what could not be looked at says so and is never ok.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path
from typing import Any, Literal

from holdfast.adapters.git import GitFailed
from holdfast.adapters.models import HOSTED, PROVIDERS
from holdfast.adapters.models.hosts import EXTRAS, HOSTS, installed
from holdfast.adapters.models.prices import table_date
from holdfast.adapters.repository import Repository
from holdfast.adapters.sandbox import open_sandbox
from holdfast.agent.chain import chain
from holdfast.app import STORE_NAME, App
from holdfast.app.goals import PROBE_S
from holdfast.engine import holders
from holdfast.errors import HoldfastError
from holdfast.store import care
from holdfast.worker.liveness import is_dead

Level = Literal["ok", "warning", "problem"]
Finding = dict[str, Any]
SPACE_BYTES_MIN = 200_000_000


def examine(app: App, folder: Path) -> list[Finding]:
    """Every finding, in the order a person would want them. Changes nothing."""
    version = ".".join(map(str, sys.version_info[:3]))
    return [
        _finding("python", "ok", f"Python {version}"),
        _git(),
        _wall(app),
        _repository(folder),
        *_store(app),
        _space(app),
        *_models(app),
        _providers(),
        _finding("prices", "ok", f"price table of {table_date()}"),
    ]


def _finding(name: str, level: Level, text: str, remedy: str = "", **more: Any) -> Finding:
    return {"name": name, "level": level, "text": text, "remedy": remedy, **more}


def _git() -> Finding:
    path = shutil.which("git")
    if path is None:
        return _finding("git", "problem", "git is not installed", "apt-get install git")
    return _finding("git", "ok", f"git at {path}")


def _wall(app: App) -> Finding:
    try:
        seen = open_sandbox(redact=app.redact, hidden=[app.home], environ=app.environ).describe()
    except HoldfastError as error:
        return _finding("wall", "problem", error.message, error.hint, wall="none")
    text = f"commands run behind {seen['wall']}: {seen['reason']}; network: {seen['network']}"
    return _finding("wall", "ok", text, **seen)


def _repository(folder: Path) -> Finding:
    try:
        repository = Repository.open(folder)
        head = repository.head()
        dirty = repository.dirty()
    except (HoldfastError, GitFailed) as error:
        return _finding(
            "repository", "warning", error.message, "a plain folder is worked on as a private copy"
        )
    if head is None:
        return _finding("repository", "ok", "a repository without commits")
    if dirty:
        text = f"HEAD {head[:12]}, {len(dirty)} files differ from it and are left out of a run"
        return _finding("repository", "warning", text, "commit them to have them seen")
    return _finding("repository", "ok", f"HEAD {head[:12]}, clean")


def _store(app: App) -> list[Finding]:
    path = app.home / STORE_NAME
    if not path.exists():
        return [_finding("store", "ok", f"none yet; the first run makes {path}")]
    try:
        problems = care.check(path)
    except HoldfastError as error:
        return [_finding("store", "problem", error.message, error.hint)]
    if problems:
        return [_finding("store", "problem", problems[0], "holdfast restore", problems=problems)]
    found = [_finding("store", "ok", f"{path} is sound, {path.stat().st_size} bytes")]
    known = care.backups(app.home / "backups")
    if not known:
        found.append(_finding("backup", "warning", "there is no backup", "holdfast backup"))
    for worker, fence, _ in app.engine.read(holders):
        dead = is_dead(app.home, worker)
        text = f"attempt {fence.session} is held by {worker}, {'dead' if dead else 'alive'}"
        remedy = f"holdfast resume {fence.goal}" if dead else ""
        found.append(_finding("lease", "warning" if dead else "ok", text, remedy))
    return found


def _space(app: App) -> Finding:
    place = app.home if app.home.exists() else app.home.parent
    free = shutil.disk_usage(place).free
    if free < SPACE_BYTES_MIN:
        return _finding("space", "problem", f"{free // 1_000_000} MB free", "free some space")
    return _finding("space", "ok", f"{free // 1_000_000} MB free")


def _models(app: App) -> list[Finding]:
    """One finding for each model of the chain."""
    names = chain(app.settings.model)
    if not names:
        return [_finding("model", "warning", "no model is set", "--model or HOLDFAST_MODEL")]
    return [_model(app, name) for name in names]


def _model(app: App, name: str) -> Finding:
    try:
        asyncio.run(_probe(app, name))
    except (HoldfastError, TimeoutError) as error:
        hint = error.hint if isinstance(error, HoldfastError) else "is its server running?"
        return _finding("model", "problem", f"{name}: {str(error) or 'no answer in time'}", hint)
    if name.partition(":")[0] in HOSTED:
        return _finding("model", "ok", f"{name} can be asked; only a call tells if it answers")
    return _finding("model", "ok", f"{name} answers")


def _providers() -> Finding:
    """Which providers can be named now, and which after another `pip install`."""
    missing = sorted(extra for extra in EXTRAS if not installed(extra))
    ready = [name for name in PROVIDERS if name not in HOSTS or HOSTS[name].extra not in missing]
    more = f"; pip install 'holdfast[…]' for {', '.join(missing)}" if missing else ""
    text = ", ".join(ready) + more
    return _finding("providers", "ok", text, ready=ready, missing=missing)


async def _probe(app: App, name: str) -> None:
    model = app.model(name)
    try:
        async with asyncio.timeout(PROBE_S):
            await model.probe()
    finally:
        await model.aclose()
