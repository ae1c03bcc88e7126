"""Use cases of steering: pin, exclude, release and approve, and the version-checked INDEX.md.

Steers are append-only; what holds for a source is its newest row. An index page is a row a version,
and a page whose plan has changed since is stale, which shows but never hides it.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Literal

from holdfast.context.steer import TASK, Steer, named
from holdfast.domain.model import Claim, Fence, Outcome
from holdfast.engine.rows import budget_of, encode, need, spec_of
from holdfast.errors import Refused, Stale
from holdfast.frozen import frozen
from holdfast.store import Row, Tx

INDEX = "INDEX.md"
INDEX_BYTES_MAX = 100_000
SOURCE_CHARS_MAX = 500


@frozen
class IndexPage:
    """One version of a goal's INDEX.md. Version 0 is the page nobody has written yet."""

    version: int
    text: str
    sha256: str
    author: str
    stale: bool


def steer(
    tx: Tx,
    task_id: int,
    verb: Literal["pin", "exclude", "release"],
    source: str,
    *,
    author: str,
    reason: str,
    once: bool = False,
    bundle_sha256: str = "",
) -> None:
    """Record what a person decided about a source; it holds for every later take until changed.

    With `once`, for the next take alone. Raises `Refused` without author or reason, `NotFound` for
    `Task N` where no task has that number or key.
    """
    task = need(tx, "task", id=task_id)
    author, reason = _line(author), _line(reason)
    if not author or not reason:
        raise Refused("steering needs an author and a reason", hint='--reason "why"')
    source = named(source)
    if verb != "release" or not source.strip():
        need_sources(tx, [source], task_id)
    tx.run(
        "steer.add",
        task=task_id,
        verb=verb,
        source=source,
        take=_take_to_brief(tx, task) if once else 0,
        author=author,
        reason=reason,
        bundle=bundle_sha256,
    )


def need_sources(tx: Tx, sources: Sequence[str], task_id: int) -> None:
    """Refuse a source that no bundle can name, and a `Task N` where no task has number or key N.

    The keys are those of the plan of `task_id`; 0 is a task of a plan that does not exist yet.
    """
    plan = need(tx, "task", id=task_id)["plan_id"] if task_id else 0
    for source in sources:
        if not source.strip() or len(source) > SOURCE_CHARS_MAX:
            raise Refused("name the source as `holdfast context preview` shows it")
        task = TASK.fullmatch(source)
        keys = [other["key"] for other in tx.all("task.of_plan", plan=plan)] if task else []
        if task and task[1] not in keys:
            need(tx, "task", id=int(task[1]))


def approve(
    tx: Tx,
    task_id: int,
    *,
    pins: Sequence[str],
    excludes: Sequence[str],
    author: str,
    reason: str,
    bundle_sha256: str = "",
    once: bool = False,
) -> None:
    """Record the whole choice at once: what is named holds, every other steer is released."""
    pins, excludes = [named(one) for one in pins], [named(one) for one in excludes]
    both = sorted({*pins} & {*excludes})
    if both:
        raise Refused(f"{both[0]!r} cannot be pinned and excluded")
    task = need(tx, "task", id=task_id)
    held = [one.source for one in steers_of(tx, task_id, _take_to_brief(tx, task))]
    gone = [source for source in held if source not in {*pins, *excludes}]
    verbs: tuple[tuple[Literal["pin", "exclude", "release"], Sequence[str]], ...] = (
        ("release", gone),
        ("pin", pins),
        ("exclude", excludes),
    )
    for verb, sources in verbs:
        for source in dict.fromkeys(sources):
            steer(
                tx,
                task_id,
                verb,
                source,
                author=author,
                reason=reason,
                once=once,
                bundle_sha256=bundle_sha256,
            )


def steers_of(tx: Tx, task_id: int, take: int) -> list[Steer]:
    """The pins and exclusions that hold for a take, in the order of their sources."""
    newest: dict[str, Row] = {}
    for row in tx.all("steer.of_task", task=task_id):
        if row["take"] in (0, take):
            newest[row["source"]] = row
    return [
        Steer(verb=row["verb"], source=source, author=row["author"], reason=row["reason"])
        for source, row in sorted(newest.items())
        if row["verb"] != "release"
    ]


def history(tx: Tx, task_id: int | None = None) -> list[dict[str, Any]]:
    """Every decision about a task's context, or about any task's, oldest first."""
    if task_id is None:
        return [dict(row) for row in tx.all("steer.all")]
    need(tx, "task", id=task_id)
    return [dict(row) for row in tx.all("steer.of_task", task=task_id)]


def next_claim(tx: Tx, task_id: int) -> tuple[Claim, str]:
    """The claim that the task's next attempt would get, and the bundle its open take has already.

    Nothing is claimed: the fence names an attempt that does not exist yet.
    """
    task = need(tx, "task", id=task_id)
    goal = need(tx, "goal", id=task["goal_id"])
    number = _next_take(task)
    take = tx.one("take.get", task=task_id, take=number)
    digest = take["bundle_sha256"] if take is not None else ""
    undoing = need(tx, "plan", id=task["plan_id"])["source"] == "undo"
    spec = spec_of(task)
    claim = Claim(
        fence=Fence(task=task_id, attempt=task["attempts"] + 1, take=number, goal=goal["id"]),
        spec=spec,
        goal_text=goal["text"],
        repository=goal["repository"],
        branch=goal["branch"],
        model=goal["model"],
        base_commit=goal["branch_commit" if undoing else "tip_commit"],
        base_tree="",
        bundle_sha256=digest,
        seed=goal["seed"],
        budget=budget_of(goal),
        lease_s=0.0,
    )
    return claim, digest


def get_index(tx: Tx, goal_id: int) -> IndexPage:
    """The newest INDEX.md of a goal, and whether its plan has changed since."""
    need(tx, "goal", id=goal_id)
    row = tx.one("index.latest", goal=goal_id)
    if row is None:
        return IndexPage(version=0, text="", sha256="", author="", stale=False)
    return IndexPage(
        version=row["version"],
        text=row["text"],
        sha256=row["sha256"],
        author=row["author"],
        stale=row["fingerprint"] != _fingerprint(tx, goal_id),
    )


def put_index(tx: Tx, goal_id: int, text: str, *, version: int, author: str) -> int:
    """Write the next version over `version`; returns its number. `Stale` when another was first."""
    newest = get_index(tx, goal_id)
    if newest.version != version:
        raise Stale(
            f"INDEX.md of goal {goal_id} is at version {newest.version}, not {version}",
            hint="read it again and repeat the change",
        )
    content, author = text.encode(), _line(author)
    if not author:
        raise Refused("an INDEX.md needs an author", hint="--author NAME")
    if len(content) > INDEX_BYTES_MAX:
        raise Refused(f"INDEX.md would have {len(content)} bytes; at most {INDEX_BYTES_MAX}")
    tx.run(
        "index.add",
        goal=goal_id,
        version=version + 1,
        text=text,
        sha256=sha256(content).hexdigest(),
        author=author,
        fingerprint=_fingerprint(tx, goal_id),
    )
    return version + 1


def accept_index(tx: Tx, task: Row, attempt: int, outcome: Outcome) -> None:
    """The answer of a root task that passed becomes the next INDEX.md. Called by settle."""
    if task["key"] != INDEX or outcome.kind not in ("passed", "unverified") or not outcome.answer:
        return
    newest = get_index(tx, task["goal_id"])
    text = outcome.answer.encode()[:INDEX_BYTES_MAX].decode(errors="ignore")
    author = f"{task['id']}.{attempt}"
    put_index(tx, task["goal_id"], text, version=newest.version, author=author)


def _fingerprint(tx: Tx, goal_id: int) -> str:
    """What an index describes: the tasks of the goal's newest plan, the root task apart."""
    plans = tx.all("plan.of_goal", goal=goal_id)
    rows = tx.all("task.of_plan", plan=plans[-1]["id"]) if plans else []
    tasks = [(row["key"], row["spec"]) for row in rows if row["key"] != INDEX]
    return sha256(encode(tasks)).hexdigest()


def _line(text: str) -> str:
    """What a person wrote as one line: it stands in headings of prompts and in lists."""
    return " ".join(text.split())


def _take_to_brief(tx: Tx, task: Row) -> int:
    """The first take that has no bundle yet: a decision cannot reach one that has."""
    number = _next_take(task)
    take = tx.one("take.get", task=task["id"], take=number)
    return number + 1 if take is not None and take["bundle_sha256"] else number


def _next_take(task: Row) -> int:
    """The open take, else the one to come; a task that is over has its last one."""
    over = task["state"] in ("succeeded", "cancelled") and task["take"]
    return int(task["take"] if task["take_open"] or over else task["take"] + 1)
