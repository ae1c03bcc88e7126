"""The routes of links, contexts, indexes and runs, as one table.

Owns which path is which use case; bodies are in `bodies`, rules below. `docs/context.md` lists the
routes for people.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from starlette.requests import Request
from starlette.routing import Route

from holdfast.app.desk import Desk
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
)
from holdfast.web.runs import Runs
from holdfast.web.wire import body_of, endpoint, id_of, in_thread, query_of

Use = Callable[[Request], Awaitable[Json]]


def routes(desk: Desk, runs: Runs, *, author: str) -> list[Route]:
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
        ("POST", "/run", partial(_run, runs)),
        ("GET", "/run/{goal_id}", partial(_of, runs.result, "goal_id")),
    )
    return [Route(path, endpoint(use), methods=[method]) for method, path, use in table]


async def _link(use: Callable[[int, int, str], Json], request: Request) -> Json:
    """Its fields in the body, or in the query: many clients send no body with DELETE."""
    if request.method == "DELETE" and request.query_params:
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


async def _run(runs: Runs, request: Request) -> Json:
    return await runs.run(await body_of(request, RunBody))
