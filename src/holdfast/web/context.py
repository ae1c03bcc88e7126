"""The routes of links, contexts, indexes and runs, as one table, and what they need of an app.

Owns which path is which use case; bodies are in `bodies`, rules below. `docs/context.md` lists the
routes for people.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol

from starlette.requests import Request
from starlette.routing import Route

from holdfast.web.bodies import (
    ApproveBody,
    DiffQuery,
    Exact,
    IndexBody,
    Json,
    LinkBody,
    PreviewBody,
    RunBody,
    ScheduleQuery,
    Strategy,
)
from holdfast.web.wire import body_of, endpoint, id_of, in_thread, query_of

Use = Callable[[Request], Awaitable[Json]]


class Desk(Protocol):
    """What people do to contexts; `holdfast.app.desk.Desk` is it."""

    def create_link(self, from_id: int, to_id: int, kind: str) -> Json: ...

    def delete_link(self, from_id: int, to_id: int, kind: str) -> Json: ...

    def list_links(self, task_id: int) -> Json: ...

    def requires_dag_schedule(
        self, plan_id: int | None = None, *, strategy: Strategy = "dag"
    ) -> Json: ...

    def preview(self, task_id: int, changes: Json | None = None) -> Json: ...

    def approve(
        self,
        task_id: int,
        *,
        pins: Sequence[str | int],
        excludes: Sequence[str | int],
        author: str,
        reason: str,
        once: bool = False,
    ) -> Json: ...

    def history(self, task_id: int) -> Json: ...

    def compare(self, left: str, right: str) -> Json: ...

    def get_index(self, goal_id: int) -> Json: ...

    def put_index(self, goal_id: int, text: str, *, version: int, author: str) -> Json: ...


class Runner(Protocol):
    """Starts goals and knows them; `holdfast.app.runs.Runs` is it."""

    async def run(self, asked: RunBody) -> Json: ...

    def result(self, goal: int) -> Json: ...


def routes(desk: Desk, runner: Runner, *, author: str) -> list[Route]:
    """Every route, bound to one app; `author` stands where a request names nobody."""
    table: tuple[tuple[str, str, Use], ...] = (
        ("POST", "/context/links", partial(_link, desk.create_link)),
        ("DELETE", "/context/links", partial(_link, desk.delete_link)),
        ("GET", "/context/links/{task_id}", partial(_of, desk.list_links, "task_id")),
        ("GET", "/context/schedule", partial(_schedule, desk)),
        ("GET", "/context/diff", partial(_diff, desk)),
        ("GET", "/context/index/{goal_id}", partial(_of, desk.get_index, "goal_id")),
        ("PUT", "/context/index/{goal_id}", partial(_write_index, desk, author)),
        ("POST", "/tasks/{task_id}/context/preview", partial(_preview, desk)),
        ("POST", "/tasks/{task_id}/context/approve", partial(_approve, desk, author)),
        ("GET", "/tasks/{task_id}/context/history", partial(_of, desk.history, "task_id")),
        ("POST", "/run", partial(_run, runner)),
        ("GET", "/run/{goal_id}", partial(_of, runner.result, "goal_id")),
    )
    return [Route(path, endpoint(use), methods=[method]) for method, path, use in table]


async def _link(use: Callable[[int, int, str], Json], request: Request) -> Json:
    """Its fields in the body, or in the query: many clients send no body with DELETE."""
    if request.query_params:
        link = query_of(request, LinkBody)
    else:
        link = await body_of(request, LinkBody)
    return await in_thread(use, link.from_id, link.to_id, link.kind)


async def _of(use: Callable[[int], Json], name: str, request: Request) -> Json:
    query_of(request, Exact)
    return await in_thread(use, id_of(request, name))


async def _schedule(desk: Desk, request: Request) -> Json:
    asked = query_of(request, ScheduleQuery)
    return await in_thread(desk.requires_dag_schedule, asked.plan_id, strategy=asked.strategy)


async def _diff(desk: Desk, request: Request) -> Json:
    asked = query_of(request, DiffQuery)
    return await in_thread(desk.compare, asked.left, asked.right)


async def _write_index(desk: Desk, author: str, request: Request) -> Json:
    page = await body_of(request, IndexBody)
    return await in_thread(
        desk.put_index,
        id_of(request, "goal_id"),
        page.text,
        version=page.version,
        author=page.author or author,
    )


async def _preview(desk: Desk, request: Request) -> Json:
    asked = await body_of(request, PreviewBody)
    nested = asked.options.changes(None) if asked.options else {}
    changes = {**asked.changes(asked.use_context), **nested}
    return await in_thread(desk.preview, id_of(request, "task_id"), changes)


async def _approve(desk: Desk, author: str, request: Request) -> Json:
    asked = await body_of(request, ApproveBody)
    return await in_thread(
        desk.approve,
        id_of(request, "task_id"),
        pins=asked.pins,
        excludes=asked.excludes,
        author=asked.author or author,
        reason=asked.reason or "approved over HTTP",
        once=asked.once,
    )


async def _run(runner: Runner, request: Request) -> Json:
    return await runner.run(await body_of(request, RunBody))
