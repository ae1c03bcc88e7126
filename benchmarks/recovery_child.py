"""The systems that `benchmarks/recovery.py` kills, one process each: every one does the same steps.

`python recovery_child.py SYSTEM FOLDER STEPS [KILL_AT]` does STEPS toy steps, or goes on with them,
in the environment of its system. A step writes its number and the time into `FOLDER/ledger`,
outside of what the system keeps; the step KILL_AT then ends the process with SIGKILL. Without
KILL_AT it goes on to the end. A step takes no time of its own. Imports stay inside: they are part
of what is measured.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Step = Callable[[int], str]


def ledger(folder: Path, kill_at: int) -> Step:
    """The effect of a step: one line in the ledger, and death where it was asked for."""
    descriptor = os.open(folder / "ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def step(number: int) -> str:
        os.write(descriptor, f"{number} {time.monotonic()}\n".encode())
        if number == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return f"step {number} is done"

    return step


def holdfast(folder: Path, steps: int, step: Step) -> None:
    """A goal worked on as the command line does: store, leases, git workspace, agent loop.

    Only the model, which answers from memory, and the one tool it asks for are of this file.
    """
    from holdfast.app import STORE_NAME, build
    from holdfast.app.goals import work
    from holdfast.config import load
    from holdfast.domain.ports import ModelReply, Observation, ToolCall, ToolSpec, Usage

    class Count:
        spec = ToolSpec(
            name="count",
            description="Take a step.",
            parameters={"type": "object", "properties": {"number": {"type": "integer"}}},
            effect="idempotent",
        )

        async def call(self, arguments: Any, workspace: Any) -> Observation:
            return Observation(tool="count", success=True, output=step(arguments["number"]))

    class Instant:
        name, context_tokens = "scripted:instant", 100_000

        async def probe(self) -> None:
            """Always well."""

        async def complete(self, request: Any) -> ModelReply:
            number = sum(message.role == "assistant" for message in request.messages)
            usage = Usage(tokens_in=900, tokens_out=40)
            if number == steps:
                return ModelReply(text="All done.", usage=usage, model="instant")
            call = ToolCall(id=f"c{number}", name="count", arguments=f'{{"number":{number}}}')
            return ModelReply(
                text="",
                calls=(call,),
                usage=usage,
                finish_reason="tool_calls",
                model="instant",
            )

        async def aclose(self) -> None:
            """Nothing is open."""

    flags = {"model": Instant.name, "max_turns": steps + 1, "stall_limit": steps}
    app = build(
        load(folder / "repo", flags=flags, environ={}),
        home=folder / "home",
        environ={},
        models={Instant.name: Instant()},
        tools={"count": Count()},
    )
    begun = (folder / "home" / STORE_NAME).exists()
    work(app, 1 if begun else _submitted(app, folder), resumed=begun)
    app.close()


def _submitted(app: Any, folder: Path) -> int:
    import asyncio

    from holdfast.app.goals import Wish, policy, start

    wish = Wish(
        text="Count the steps.",
        repo=folder / "repo",
        model=app.settings.model,
        policy=policy(app.settings),
    )
    return asyncio.run(start(app, wish))


def langgraph(folder: Path, steps: int, step: Step) -> None:
    """A node that loops on `SqliteSaver`, durability sync."""
    _langgraph(folder, steps, step, durability="sync")


def langgraph_default(folder: Path, steps: int, step: Step) -> None:
    """The same with the durability it has unless told otherwise."""
    _langgraph(folder, steps, step)


def _langgraph(folder: Path, steps: int, step: Step, **durability: Any) -> None:
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, StateGraph
    from typing_extensions import TypedDict

    class State(TypedDict):
        number: int
        result: str

    def node(state: State) -> State:
        return {"number": state["number"] + 1, "result": step(state["number"])}

    builder = StateGraph(State)
    builder.add_node("step", node)
    builder.add_edge(START, "step")
    builder.add_conditional_edges("step", lambda state: END if state["number"] >= steps else "step")
    with SqliteSaver.from_conn_string(str(folder / "langgraph.db")) as saver:
        saver.setup()
        graph = builder.compile(checkpointer=saver)
        settings: Any = {"configurable": {"thread_id": "one"}, "recursion_limit": steps + 10}
        kept = graph.get_state(settings).next
        graph.invoke(None if kept else {"number": 0, "result": ""}, settings, **durability)


def dbos(folder: Path, steps: int, step: Step) -> None:
    """One workflow of steps; what was pending is recovered when it is launched again."""
    from dbos import DBOS, SetWorkflowID

    @DBOS.step()
    def one(number: int) -> str:
        return step(number)

    @DBOS.workflow()
    def whole() -> None:
        for number in range(steps):
            one(number)

    database = folder / "dbos.sqlite"
    begun = database.exists()
    url = f"sqlite:///{database}"
    DBOS(config={"name": "steps", "system_database_url": url, "log_level": "ERROR"})
    DBOS.launch()
    if begun:
        DBOS.retrieve_workflow("one").get_result()
    else:
        with SetWorkflowID("one"):
            whole()
    DBOS.destroy()


SYSTEMS = {
    "holdfast": holdfast,
    "langgraph": langgraph,
    "langgraph_default": langgraph_default,
    "dbos": dbos,
}


def main(system: str, folder: str, steps: str, kill_at: str = "-1") -> None:
    place = Path(folder)
    SYSTEMS[system](place, int(steps), ledger(place, int(kill_at)))


if __name__ == "__main__":
    main(*sys.argv[1:])
