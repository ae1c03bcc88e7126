"""Summaries by a model of what does not fit into a bundle: opt-in, asked once, remembered.

Owns when a model is asked before a take has its bundle. Each call is a step of the take's journal
under a key made of model, prompt and text: it is paid and told like any other, a killed attempt
does not ask again, and later tasks of the goal find it by its key. One that fails says so where the
summary would stand, above the extract that takes its place. A preview asks nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256

import msgspec

from holdfast.agent import evidence, prompts
from holdfast.agent.chain import chain
from holdfast.agent.conversation import encode
from holdfast.agent.journal import Effectful, LiveJournal, Performed
from holdfast.context.bundle import Bundle, Summary, between_fences
from holdfast.context.tokens import count_tokens
from holdfast.domain.model import Claim
from holdfast.domain.ports import Message, ModelReply, ModelRequest, Usage
from holdfast.engine import steps_of
from holdfast.errors import Exhausted, ModelError
from holdfast.store import Tx
from holdfast.worker.workshop import Workshop

WORDS_MIN, WORDS_MAX = 80, 300
WIDE_TOKENS = 450  # from this room on a summary may be long
OUTPUT_TOKENS = 1024
ROUNDS_MAX = 3


class Summaries:
    """What a goal's journals know, what failed here, and what is still wished, by key."""

    def __init__(self, shop: Workshop, claim: Claim) -> None:
        # A shell task or a check of the whole may have no model at all.
        self.model = next(iter(chain(claim.spec.model or claim.model)), "")
        self.wished: dict[str, ModelRequest] = {}
        self.failed: dict[str, str] = {}
        self._shop, self._goal, self._seed = shop, claim.fence.goal, claim.seed

    def __call__(self, text: str, room_tokens: int) -> Summary:
        """The summary of a text for so much room; one that is missing is wished for."""
        if not self.model:
            return Summary(by="", problem="the task has no model")
        request = self._request(text, WORDS_MIN if room_tokens < WIDE_TOKENS else WORDS_MAX)
        key = f"brief/{sha256(encode([self.model, request.messages])).hexdigest()[:32]}"
        known = self._shop.engine.read(_known, self._goal, key)
        if known is not None:
            return Summary(text=known.text.strip(), by=self.model)
        if key not in self.failed:
            self.wished[key] = request
        return Summary(by=self.model, problem=self.failed.get(key, "not made yet"))

    def _request(self, text: str, words: int) -> ModelRequest:
        return ModelRequest(
            model=self.model.partition(":")[2] or self.model,
            messages=(
                Message(
                    role="system",
                    content=prompts.fill(prompts.load("summary"), words=str(words)),
                ),
                Message(role="user", content=between_fences(text)),
            ),
            tools=(),
            seed=self._seed,
        )


async def summed_up(
    shop: Workshop, claim: Claim, make: Callable[[Summaries], Bundle]
) -> tuple[Bundle, Claim]:
    """The bundle that `make` gives once a model was asked for what it wishes.

    The claim comes back with the steps that were taken.
    """
    summaries = Summaries(shop, claim)
    journal = LiveJournal(shop.engine, claim.fence, claim.steps, base_tree="", probe=shop.probe)
    for _ in range(ROUNDS_MAX):  # a summary changes the room that others get
        made = await asyncio.to_thread(make, summaries)
        if not summaries.wished:
            break
        for key, request in summaries.wished.items():
            try:
                await journal.step(_call(shop, summaries.model, key, request))
            except (ModelError, Exhausted) as error:
                summaries.failed[key] = error.code
        await journal.flush()
        summaries.wished.clear()
    else:
        made = await asyncio.to_thread(make, summaries)
    steps = shop.engine.read(steps_of, claim.fence.task, claim.fence.take)
    return made, replace(claim, steps=tuple(steps))


def _call(shop: Workshop, model: str, key: str, request: ModelRequest) -> Effectful:
    async def perform() -> Performed:
        started = shop.clock.monotonic_s()
        reply = await shop.model(model).complete(request)
        took_ms = round((shop.clock.monotonic_s() - started) * 1000)
        return Performed(
            result=encode(reply),
            usage=reply.usage,
            events=(evidence.llm_call(key, reply, took_ms),),
        )

    size = sum(count_tokens(message.content) for message in request.messages)
    reserve = Usage(tokens_in=size, tokens_out=OUTPUT_TOKENS)
    return Effectful(
        key=key,
        kind="summary",
        effect="idempotent",
        request=encode(request),
        perform=perform,
        reserve_tokens=reserve.tokens,
        reserve_nusd=shop.cost(model, reserve),
    )


def _known(tx: Tx, goal: int, key: str) -> ModelReply | None:
    row = tx.one("step.of_goal_by_key", goal=goal, key=key)
    return None if row is None else msgspec.json.decode(tx.unpack(row["result"]), type=ModelReply)
