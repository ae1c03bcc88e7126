"""What a turn of a long attempt asks of us does not grow with the turns before it.

Counted, not timed: how often text is looked at and files are read, by turn.
"""

import asyncio
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from e2e.support import make_repo
from holdfast.adapters.models import prices
from holdfast.agent.compaction import size
from holdfast.agent.conversation import Conversation
from holdfast.app import build
from holdfast.app.goals import Wish, start
from holdfast.config import Settings
from holdfast.context import tokens
from holdfast.domain.model import Policy
from holdfast.domain.ports import ModelReply, ModelRequest, ToolCall, Usage
from holdfast.engine.outlook import goal_result
from holdfast.worker.liveness import LifeLine
from holdfast.worker.run import run_goal

TURNS = 60


class Reader:
    """A model that reads another part of a file in every turn; `looks` is noted at each."""

    name = "instant:reader"
    context_tokens = None

    def __init__(self, looks: list[int]) -> None:
        self._looks = looks
        self.by_turn: list[int] = []

    async def probe(self) -> None: ...

    async def aclose(self) -> None: ...

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.by_turn.append(sum(self._looks))
        turn = len(self.by_turn)
        if turn > TURNS:
            return ModelReply(text="done", usage=Usage(tokens_in=1))
        wanted = f'{{"path": "long.txt", "offset": {turn}, "limit": 5}}'
        call = ToolCall(id=f"c{turn}", name="read_file", arguments=wanted)
        return ModelReply(text="", calls=(call,), usage=Usage(tokens_in=1))


class Counting:
    """The token counter's pattern, which notes how much text it is shown."""

    def __init__(self, pattern: re.Pattern[str], looks: list[int]) -> None:
        self._pattern, self._looks = pattern, looks

    def subn(self, by: str, text: str) -> tuple[str, int]:
        self._looks.append(len(text))
        return self._pattern.subn(by, text)


def grown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], int]:
    """Characters looked at by turn, and how often prices were read."""
    looks: list[int] = []
    parsed: list[str] = []
    read = prices._parse

    def parsing(text: str, where: str) -> Any:
        parsed.append(where)
        return read(text, where)

    monkeypatch.setattr(tokens, "_PIECE", Counting(tokens._PIECE, looks))
    monkeypatch.setattr(prices, "_parse", parsing)
    repo = make_repo(folder / "repo", {"long.txt": "".join(f"line {n}\n" for n in range(200))})
    model = Reader(looks)
    settings = Settings(max_turns=TURNS + 5, stall_limit=99, repeat_limit=99)
    app = build(settings, home=folder / "home", environ={}, models={model.name: model})
    policy = Policy(max_turns=TURNS + 5, stall_limit=99, repeat_limit=99)
    wish = Wish(text="Read", repo=repo, model=model.name, policy=policy, checks=("true",))
    line = LifeLine(app.home, app.worker)

    async def play() -> str:
        goal = await start(app, wish)
        await run_goal(app.workshop(), goal)
        return str(app.engine.read(goal_result, goal)["outcome"])

    try:
        assert asyncio.run(play()) == "passed"
    finally:
        line.close()
        app.close()
    return [after - before for before, after in pairwise(model.by_turn)], len(parsed)


def test_a_long_attempt_pays_for_a_turn_what_the_first_one_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    each, parsed = grown(tmp_path, monkeypatch)
    assert len(each) == TURNS
    assert max(each) - min(each) < 40, "a turn looks at its own reply and result, not at older ones"
    assert parsed <= 2, "prices are read once a process"


def test_a_loop_that_counts_the_whole_conversation_in_every_turn_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def recount(talk: Conversation) -> int:
        return sum(map(size, talk.messages))

    monkeypatch.setattr(
        Conversation, "tokens", property(recount, lambda talk, value: None), raising=False
    )
    each, _ = grown(tmp_path, monkeypatch)
    assert max(each) - min(each) > 40 * TURNS


def test_a_conversation_that_cannot_be_made_to_fit_is_not_shortened_in_every_turn() -> None:
    """Its texts are at their floor: trying costs the whole conversation and gains little."""
    talk = Conversation(model="a:b", seed=1, tools=(), system="s", user="u")
    tried = []
    budget = 50
    for turn in range(400):
        talk.user("a few words that nobody can make shorter", f"t{turn}")
        if talk.over(budget):
            tried.append(turn)
            talk.shorten(list(talk.whole), "step")
    assert 10 < len(tried) < 60
    fits = Conversation(model="a:b", seed=1, tools=(), system="s", user="u")
    assert not fits.over(budget)
    assert not talk.over(0), "no budget is no limit"
