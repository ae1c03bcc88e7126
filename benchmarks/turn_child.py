"""The agents that `benchmarks/turn.py` compares, one process each: every one does the same turns.

`python turn_child.py SYSTEM FOLDER TURNS REPEATS` runs in the environment of its system. A run is
TURNS turns and a last answer. In a turn the model, which answers at once from memory and reports
its usage, asks for one call of the tool `look`, which returns a line at once; the agent shows the
line to the model. What is measured is therefore the agent's own work. Each run is told as one JSON
line `{"seconds", "calls"}`; the first is a warm-up that the parent leaves out. Imports stay inside.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

GOAL = "Look at each of the files in turn and say when you have seen them all."
SYSTEM_PROMPT = "You look at files, one in each turn."
TOKENS = (900, 40)


def line(number: int) -> str:
    return f"file {number:05d}: 120 lines, 3 tests, last changed in June"


def tell(**facts: Any) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def timed(runs: Iterator[Callable[[], Any]], seen: list[int]) -> None:
    """Do the runs; each must have called the tool as often as it was told to."""
    for run in runs:
        seen.clear()
        since = perf_counter()
        run()
        tell(seconds=perf_counter() - since, calls=len(seen))


def timed_in_a_loop(work: Callable[[], Awaitable[None]], repeats: int, seen: list[int]) -> None:
    """The same for who needs an event loop: like the agents, it is made before time is taken."""
    with asyncio.Runner() as runner:
        timed(((lambda: runner.run(work())) for _ in range(repeats)), seen)


# --- holdfast: the agent loop over a journal ------------------------------------------------------


def holdfast(folder: Path, turns: int, repeats: int) -> None:
    """The loop as a worker runs it: claimed, briefed, every step in the store, settled."""
    _loop(folder, turns, repeats)


def holdfast_effect(folder: Path, turns: int, repeats: int) -> None:
    """The same when the tool has an effect: its intent is stored before it, so two commits."""
    _loop(folder, turns, repeats, effect="idempotent")


def holdfast_unkept(folder: Path, turns: int, repeats: int) -> None:
    """The same loop over a journal that keeps nothing. No mode of the product: it has none."""
    _loop(folder, turns, repeats, durable=False)


def _loop(
    folder: Path, turns: int, repeats: int, *, effect: Any = "pure", durable: bool = True
) -> None:
    from holdfast.adapters.clock import SystemClock
    from holdfast.agent import loop
    from holdfast.agent.conversation import encode
    from holdfast.agent.journal import LiveJournal
    from holdfast.domain.model import GoalSpec, PlanSpec
    from holdfast.engine import Engine, brief, claim, settle, submit

    seen: list[int] = []
    bundle = _bundle(turns, effect)
    model = bundle.model
    goal = GoalSpec(text=GOAL, repository="/", base_commit="", base_tree="", model=model)
    engine = Engine(folder / "holdfast.db", SystemClock())

    for _ in range(repeats):  # the agents of the others are made before the time is taken too
        engine.call(submit, goal, PlanSpec(tasks=(bundle.task,)))

    async def work() -> None:
        claimed = await engine.acall(claim, "w", lease_s=60.0)
        await engine.acall(brief, claimed.fence, encode(bundle), base_commit="", base_tree="")
        live = LiveJournal(engine, claimed.fence, (), base_tree="")
        job = _job(bundle, live if durable else _unkept(), turns, seen, claimed.fence)
        await engine.acall(settle, claimed.fence, await loop.run(job))

    timed_in_a_loop(work, repeats, seen)
    engine.close()


def _bundle(turns: int, effect: Any) -> Any:
    from holdfast.context.bundle import Bundle
    from holdfast.domain.model import Policy, TaskSpec
    from holdfast.domain.ports import ToolSpec

    spec = ToolSpec(
        name="look",
        description="Look at a file.",
        parameters={
            "type": "object",
            "properties": {"number": {"type": "integer"}},
            "required": ["number"],
        },
        effect=effect,
    )
    policy = Policy(max_turns=turns + 1, stall_limit=turns)
    return Bundle(
        task=TaskSpec(key="look", prompt=GOAL, policy=policy),
        goal=GOAL,
        model="scripted:instant",
        seed=1,
        system=SYSTEM_PROMPT,
        user=GOAL,
        tools=(spec,),
    )


def _job(bundle: Any, journal: Any, turns: int, seen: list[int], fence: Any) -> Any:
    from holdfast.adapters.clock import SystemClock
    from holdfast.adapters.tools import check_arguments
    from holdfast.agent.loop import Job
    from holdfast.domain.ports import ModelReply, Observation, ToolCall, Usage

    class Look:
        (spec,) = bundle.tools

        async def call(self, arguments: Any, workspace: Any) -> Observation:
            seen.append(arguments["number"])
            return Observation(tool="look", success=True, output=line(arguments["number"]))

    class Instant:
        name, context_tokens, turn = bundle.model, 100_000, 0

        async def complete(self, request: Any) -> ModelReply:
            self.turn += 1
            usage = Usage(tokens_in=TOKENS[0], tokens_out=TOKENS[1])
            if self.turn > turns:
                return ModelReply(text="All seen.", usage=usage, model="instant")
            calls = (
                ToolCall(id=f"c{self.turn}", name="look", arguments=f'{{"number":{self.turn}}}'),
            )
            return ModelReply(
                text="", calls=calls, usage=usage, finish_reason="tool_calls", model="instant"
            )

    class Quiet:
        def show(self, progress: Any) -> None:
            """Nobody looks."""

    model = Instant()
    return Job(
        bundle=bundle,
        journal=journal,
        workspace=None,  # type: ignore[arg-type]  # no tool of this task has one
        model=lambda name: model,
        tools={"look": Look()},
        problems=check_arguments,
        cost=lambda name, usage: 0,
        sink=Quiet(),
        fence=fence,
        clock=SystemClock(),
    )


def _unkept() -> Any:
    """A journal without memory: every step is performed, nothing is written."""

    class Unkept:
        tree = ""

        async def step(self, effectful: Any) -> bytes:
            found: bytes = (await effectful.perform()).result
            return found

        async def together(self, effectfuls: Any) -> list[bytes]:
            return [await self.step(effectful) for effectful in effectfuls]

        async def decision(self, *words: Any, **more: Any) -> None:
            """Kept nowhere."""

        def recorded(self, key: str) -> None:
            return None

        async def flush(self) -> None:
            """Nothing waits."""

    return Unkept()


# --- pydantic-ai: its agent alone, and under DBOS -------------------------------------------------


def pydantic_ai(folder: Path, turns: int, repeats: int) -> None:
    agent, seen = _pydantic_agent(turns)

    async def work() -> None:
        await agent.run(GOAL, usage_limits=_no_limits())

    timed_in_a_loop(work, repeats, seen)


def pydantic_ai_dbos(folder: Path, turns: int, repeats: int) -> None:
    """Its DBOS capability on DBOS's SQLite: model calls are DBOS steps, and so is the tool."""
    from dbos import DBOS
    from pydantic_ai.durable_exec.dbos import DBOSDurability

    agent, seen = _pydantic_agent(turns, capabilities=[DBOSDurability()])
    url = f"sqlite:///{folder / 'dbos.sqlite'}"
    DBOS(config={"name": "turns", "system_database_url": url, "log_level": "ERROR"})

    @DBOS.workflow()
    async def work() -> str:
        found = await agent.run(GOAL, usage_limits=_no_limits())
        return str(found.output)

    DBOS.launch()
    timed_in_a_loop(work, repeats, seen)
    DBOS.destroy()


def _no_limits() -> Any:
    from pydantic_ai.usage import UsageLimits

    return UsageLimits(request_limit=None)


def _pydantic_agent(turns: int, **more: Any) -> tuple[Any, list[int]]:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models import Model
    from pydantic_ai.usage import RequestUsage

    seen: list[int] = []

    class Instant(Model):
        model_name, system = "instant", "instant"

        async def request(self, messages: Any, *_: Any) -> Any:
            turn = len(messages) // 2 + 1
            usage = RequestUsage(input_tokens=TOKENS[0], output_tokens=TOKENS[1])
            if turn > turns:
                return ModelResponse(parts=[TextPart("All seen.")], usage=usage)
            call = ToolCallPart("look", {"number": turn}, tool_call_id=f"c{turn}")
            return ModelResponse(parts=[call], usage=usage)

    agent = Agent(Instant(), instructions=SYSTEM_PROMPT, name="looker", **more)

    @agent.tool_plain
    async def look(number: int) -> str:
        """Look at a file."""
        seen.append(number)
        return line(number)

    return agent, seen


# --- LangGraph: its prebuilt agent, a checkpoint after each step ----------------------------------


def langgraph(folder: Path, turns: int, repeats: int) -> None:
    """`create_react_agent` on `SqliteSaver`, durability sync."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    with SqliteSaver.from_conn_string(str(folder / "langgraph.db")) as saver:
        saver.setup()
        _langgraph(turns, repeats, checkpointer=saver, durability="sync")


def langgraph_unkept(folder: Path, turns: int, repeats: int) -> None:
    """The same agent without a checkpointer."""
    _langgraph(turns, repeats, checkpointer=None, durability=None)


def _langgraph(turns: int, repeats: int, *, checkpointer: Any, durability: Any) -> None:
    import warnings

    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.tools import tool
    from langgraph.prebuilt import create_react_agent

    warnings.simplefilter("ignore")  # it says that the function moved to a larger package
    seen: list[int] = []

    class Instant(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "instant"

        def bind_tools(self, tools: Any, **_: Any) -> Any:
            return self

        def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
            turn = sum(message.type == "tool" for message in messages) + 1
            calls = [{"name": "look", "args": {"number": turn}, "id": f"c{turn}"}]
            usage = dict(
                zip(("input_tokens", "output_tokens", "total_tokens"), (*TOKENS, 940), strict=True)
            )
            message = AIMessage(
                content="All seen." if turn > turns else "",
                tool_calls=[] if turn > turns else calls,
                usage_metadata=usage,
            )
            return ChatResult(generations=[ChatGeneration(message=message)])

    @tool
    def look(number: int) -> str:
        """Look at a file."""
        seen.append(number)
        return line(number)

    agent = create_react_agent(Instant(), [look], prompt=SYSTEM_PROMPT, checkpointer=checkpointer)
    extra = {"durability": durability} if durability else {}

    def work(name: int) -> None:
        settings = {"configurable": {"thread_id": str(name)}, "recursion_limit": 3 * turns + 10}
        agent.invoke({"messages": [("user", GOAL)]}, settings, **extra)

    timed(((lambda name=name: work(name)) for name in range(repeats)), seen)


# --- smolagents and mini-swe-agent: agents that keep nothing --------------------------------------


def smolagents(folder: Path, turns: int, repeats: int) -> None:
    """Its `ToolCallingAgent`, silent."""
    from smolagents import ToolCallingAgent, tool
    from smolagents.models import (
        ChatMessage,
        ChatMessageToolCall,
        ChatMessageToolCallFunction,
        MessageRole,
        Model,
    )
    from smolagents.monitoring import LogLevel, TokenUsage

    seen: list[int] = []

    @tool
    def look(number: int) -> str:
        """Look at a file.

        Args:
            number: which one
        """
        seen.append(number)
        return line(number)

    class Instant(Model):
        turn = 0

        def generate(self, messages: Any, **_: Any) -> ChatMessage:
            self.turn += 1
            over = self.turn > turns
            function = ChatMessageToolCallFunction(
                name="final_answer" if over else "look",
                arguments={"answer": "All seen."} if over else {"number": self.turn},
            )
            call = ChatMessageToolCall(function=function, id=f"c{self.turn}", type="function")
            return ChatMessage(
                role=MessageRole.ASSISTANT,
                content="",
                tool_calls=[call],
                token_usage=TokenUsage(*TOKENS),
            )

    def work() -> None:
        agent = ToolCallingAgent(
            [look], Instant(), max_steps=turns + 1, verbosity_level=LogLevel.OFF
        )
        agent.run(GOAL)

    timed((work for _ in range(repeats)), seen)


def mini_swe_agent(folder: Path, turns: int, repeats: int) -> None:
    """Its `DefaultAgent` with its templates for messages; the command is answered at once."""
    from minisweagent.agents.default import DefaultAgent
    from minisweagent.models.test_models import DeterministicModel

    seen: list[int] = []

    class Instant(DeterministicModel):
        """Its own double, which would carry every reply through each of its templates."""

        turn = 0

        def query(self, messages: Any, **_: Any) -> dict[str, Any]:
            self.turn += 1
            found: dict[str, Any] = {"role": "assistant", "content": "I look.", "extra": {}}
            found["extra"] = {"actions": [{"command": f"look {self.turn}"}], "cost": 0.0}
            return found

    class World:
        def execute(self, action: Any, **_: Any) -> dict[str, Any]:
            from minisweagent.exceptions import Submitted

            number = int(action["command"].split()[1])
            if number > turns:
                raise Submitted({"role": "exit", "content": "All seen.", "extra": {}})
            seen.append(number)
            return {"output": line(number), "returncode": 0, "exception_info": ""}

        def get_template_vars(self, **_: Any) -> dict[str, Any]:
            return {}

        def serialize(self) -> dict[str, Any]:
            return {}

    def work() -> None:
        agent = DefaultAgent(
            Instant(outputs=[]),
            World(),
            system_template=SYSTEM_PROMPT,
            instance_template="{{task}}",
            cost_limit=0,
        )
        agent.run(GOAL)

    timed((work for _ in range(repeats)), seen)


SYSTEMS = {
    "holdfast": holdfast,
    "holdfast_effect": holdfast_effect,
    "holdfast_unkept": holdfast_unkept,
    "pydantic_ai": pydantic_ai,
    "pydantic_ai_dbos": pydantic_ai_dbos,
    "langgraph": langgraph,
    "langgraph_unkept": langgraph_unkept,
    "smolagents": smolagents,
    "mini_swe_agent": mini_swe_agent,
}


def main(system: str, folder: str, turns: str, repeats: str) -> None:
    SYSTEMS[system](Path(folder), int(turns), int(repeats))


if __name__ == "__main__":
    main(*sys.argv[1:])
