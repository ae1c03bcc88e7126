"""The agent loop: ask, act, look, until an answer is proven or a guard ends it.

The same code runs live, resumed and in replay; only the journal differs. Every effect goes through
`journal.step`, and what the loop decides follows from recorded results, or is itself recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import count
from typing import Any

import msgspec

from holdfast.agent import evidence
from holdfast.agent.actions import Actions, Call, parse
from holdfast.agent.chain import Move, asked, chain, moved, next_model
from holdfast.agent.compaction import Compaction, applied, compact
from holdfast.agent.conversation import Conversation, encode, first_difference
from holdfast.agent.edits import Edits, Fallback, advice
from holdfast.agent.guards import Guards, Stop
from holdfast.agent.journal import Effectful, Journal, Performed
from holdfast.agent.merging import unmarked
from holdfast.agent.verify import corrective, describe, proven, verify
from holdfast.context.bundle import Bundle
from holdfast.context.rules import broken
from holdfast.domain.model import CheckResult, Fence, Outcome
from holdfast.domain.ports import (
    Clock,
    Model,
    ModelReply,
    Observation,
    Progress,
    Sink,
    Tool,
    ToolSpec,
    Usage,
    Workspace,
)
from holdfast.errors import Divergence, Exhausted, ModelError
from holdfast.frozen import frozen

OUTPUT_RESERVE_TOKENS = 1024


@frozen
class Job:
    """What one attempt runs with. `model` and `cost` answer for one `provider:model`; `clock` is
    None in replay: nothing may look at the time."""

    bundle: Bundle
    journal: Journal
    workspace: Workspace
    model: Callable[[str], Model]
    tools: Mapping[str, Tool]
    problems: Callable[[ToolSpec, Mapping[str, Any]], list[str]]
    cost: Callable[[str, Usage], int | None]
    sink: Sink
    fence: Fence
    clock: Clock | None = None

    @cached_property
    def specs(self) -> Mapping[str, ToolSpec]:
        """What the model is told about each tool, by its name."""
        return {spec.name: spec for spec in self.bundle.tools}

    @cached_property
    def who(self) -> tuple[int, str, str]:
        """The goal, the task and the attempt, as progress names them."""
        return self.fence.goal, self.bundle.task.label, self.fence.session


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded reply with what it was understood to ask for."""

    reply: ModelReply
    actions: Actions


async def run(job: Job) -> Outcome:
    """Run one attempt of an agent task to its outcome."""
    bundle, journal, policy = job.bundle, job.journal, job.bundle.task.policy
    talk = Conversation(
        model=chain(bundle.model)[0],
        seed=bundle.seed,
        tools=bundle.tools if policy.calls == "native" else (),
        system=bundle.system,
        user=bundle.user,
    )
    guards, deadline, rounds = Guards(policy), _deadline(job), 0
    edits = Edits(bundle.tools)
    for turn in count(1):
        name = f"t{turn:03}"
        stop = await _stopped(job, guards, name, turn, deadline)
        if stop is not None:
            return await _wind_up(job, stop)
        await _keep_short(job, talk, name)
        try:
            said = await ask(job, talk, name)
        except Exhausted as exhausted:
            stop = Stop(reason=exhausted.resource, detail=str(exhausted))
            await journal.decision(f"{name}/stop", encode(stop), stop.reason, stop.detail)
            return await _wind_up(job, stop)
        match said.actions.kind:
            case "calls":
                seen = await _act(job, talk, said.actions.calls, name, edits)
                guards.round(_signature(said.actions), seen)
            case "cut" | "empty":
                talk.user(bundle.templates[said.actions.kind], name)
                guards.round(said.actions.kind, [""])
            case "answer":
                rounds += 1
                results = await check(job, f"v{rounds:02}")
                if proven(results) or not results or rounds > policy.max_verification_retries:
                    kept = bundle.task.provisional
                    return await conclude(
                        job,
                        said.actions.answer,
                        results,
                        rules=bundle.index_rules,
                        provisional=kept,
                    )
                talk.user(corrective(bundle.templates["corrective"], results), name)
    raise AssertionError("count() does not end")


async def _keep_short(job: Job, talk: Conversation, name: str) -> None:
    """Compact a conversation over its budget before turn `name`; see `agent.compaction`."""
    key, budget = f"{name}/compact", job.bundle.conversation_tokens
    recorded = job.journal.recorded(key)
    if recorded is None:
        if not talk.over(budget) or _begun(job, name):
            return
        made = compact(talk.whole, talk.origins, budget_tokens=budget)
        if made is None:
            return
        recorded = encode(made)
        said = f"{made.before} tokens, over {budget}: now {made.after}"
        answer = f"{len(made.short)} texts shortened"
        await job.journal.decision(key, recorded, answer, said, question="what is left out?")
    try:
        shown = applied(talk.whole, msgspec.json.decode(recorded, type=Compaction))
    except (ValueError, LookupError) as error:  # msgspec's errors are ValueErrors
        raise Divergence(
            f"step {key} shortened another conversation: {error}", step=key, field="short", byte=0
        ) from error
    talk.shorten(shown, key)


async def ask(job: Job, talk: Conversation, name: str) -> Reply:
    """One model round trip of turn `name`, by the first model of the chain that answers.

    Raises what the last of them failed with, or a failure that would stand at any of them.
    """
    for moves in count():
        recorded = job.journal.recorded(moved(name, moves))
        if recorded is None:
            try:
                return await _ask_one(job, talk, asked(name, moves))
            except ModelError as error:
                move = next_model(chain(job.bundle.model), talk.model, error)
                if move is None:
                    raise
                talk.take_back()
            recorded = encode(move)
            key = moved(name, moves)
            reason = f"{move.code}: {move.reason}"
            await job.journal.decision(key, recorded, move.target, reason, question="which model?")
        move = msgspec.json.decode(recorded, type=Move)
        said = f"{name} {move.source} → {move.target}: {move.reason}"
        job.sink.show(_progress(job, "model", said, name))
        talk.move(move.target)
    raise AssertionError("count() does not end")


async def _ask_one(job: Job, talk: Conversation, key: str) -> Reply:
    """Ask one model as a step; a recorded reply is compared with how it was read then."""
    model, request = talk.model, talk.request()
    wanted = Usage(tokens_in=talk.tokens, tokens_out=OUTPUT_RESERVE_TOKENS)
    specs = job.specs
    said: Reply | None = None

    async def perform() -> Performed:
        nonlocal said
        job.sink.show(_progress(job, "asking", model, key))
        started = job.clock.monotonic_s() if job.clock else 0.0
        reply = await job.model(model).complete(request)
        took = (job.clock.monotonic_s() - started) * 1000 if job.clock else 0.0
        said = Reply(reply=reply, actions=parse(reply, specs, job.problems))
        return Performed(
            result=encode(said),
            usage=reply.usage,
            events=(evidence.llm_call(key, reply, round(took)),),
        )

    content = await job.journal.step(
        Effectful(
            key=key,
            kind="model",
            effect="idempotent",
            request=talk.delta(),
            perform=perform,
            reserve_tokens=wanted.tokens,
            reserve_nusd=job.cost(model, wanted),
        )
    )
    if said is None:
        said = msgspec.json.decode(content, type=Reply)
        _same_reading(key, said, parse(said.reply, specs, job.problems))
    if said.reply.finish_reason == "content_filter":
        await job.journal.flush()
        raise ModelError(
            "the provider's content filter ended the reply",
            failure_class="policy",
            code="content_filter",
        )
    talk.assistant(said.reply, [call.call for call in said.actions.calls], key)
    job.sink.show(_progress(job, "turn", f"{key.partition('/')[0]} {_gist(said)}", key))
    return said


async def _act(
    job: Job, talk: Conversation, calls: Sequence[Call], name: str, edits: Edits
) -> list[str]:
    """Perform a reply's calls as steps and show the model what they saw, in the order of the calls.

    All at once when none of them has an effect, else one after the other: a step's key and place
    follow from the position of its call, never from which one was done first.
    """
    steps = {
        index: _step_of(job, call, f"{name}/call:{index}")
        for index, call in enumerate(calls)
        if not call.problem
    }
    seen = {index: f"ERROR {call.problem}" for index, call in enumerate(calls) if call.problem}

    async def note(index: int, content: bytes) -> None:
        observation = msgspec.json.decode(content, type=Observation)
        seen[index] = shown(observation)
        path = str(calls[index].arguments.get("path", ""))
        fallback = edits.note(observation.tool, path, observation)
        if fallback is not None:
            seen[index] += f"\n{advice(fallback)}"
            await _record_fallback(job, f"{name}/format:{index}", fallback)
        said = f"{observation.tool} {_brief(calls[index], observation)}"
        job.sink.show(_progress(job, "tool", said, name))

    if len(steps) > 1 and all(step.effect == "pure" for step in steps.values()):
        contents = await job.journal.together(list(steps.values()))
        for index, content in zip(steps, contents, strict=True):
            await note(index, content)
    else:
        for index, step in steps.items():
            await note(index, await job.journal.step(step))
    talk.observe([(call.call, seen[at], f"{name}/call:{at}") for at, call in enumerate(calls)])
    return [seen[at] for at in range(len(calls))]


async def _record_fallback(job: Job, key: str, fallback: Fallback) -> None:
    """The change of format as a decision, so that the trace can count it for each model."""
    if job.journal.recorded(key) is None:
        reason = f"{fallback.refused} {fallback.source} edits refused: {fallback.code}"
        await job.journal.decision(
            key, encode(fallback), "whole", reason, question=f"how to edit {fallback.path}?"
        )


def _step_of(job: Job, call: Call, key: str) -> Effectful:
    spec = job.specs[call.call.name]

    async def perform() -> Performed:
        job.sink.show(_progress(job, "calling", f"{spec.name} {_target(call)}", key))
        observation = await job.tools[spec.name].call(call.arguments, job.workspace)
        return Performed(
            result=encode(observation), events=(evidence.tool_output(key, observation),)
        )

    return Effectful(
        key=key,
        kind="tool",
        effect=spec.effect,
        request=encode({"tool": spec.name, "arguments": call.arguments}),
        perform=perform,
        writes=spec.writes,
        answered=lambda text: encode(
            Observation(tool=spec.name, success=True, output=f"A person says: {text}")
        ),
    )


def shown(observation: Observation) -> str:
    """An observation as the model reads it."""
    if observation.error is None:
        return observation.output
    head = f"ERROR {observation.error.code}: {observation.error.message}"
    return f"{head}\n{observation.output}".rstrip()


async def _stopped(
    job: Job, guards: Guards, name: str, turn: int, deadline: float | None
) -> Stop | None:
    stop = guards.before(turn)
    if stop is not None:
        return stop
    recorded = job.journal.recorded(f"{name}/stop")
    if recorded is not None:
        return msgspec.json.decode(recorded, type=Stop)
    if job.clock is None or deadline is None or job.clock.monotonic_s() < deadline:
        return None
    if _begun(job, name):
        return None
    stop = Stop(reason="wall_clock", detail=f"{job.bundle.task.policy.attempt_s:g} s are over")
    await job.journal.decision(f"{name}/stop", encode(stop), stop.reason, stop.detail)
    return stop


def _begun(job: Job, name: str) -> bool:
    """Whether an attempt of this take asked a model in this turn before."""
    return any(job.journal.recorded(key) is not None for key in (asked(name, 0), moved(name, 0)))


async def _wind_up(job: Job, stop: Stop) -> Outcome:
    """A guard ended it: keep the work, run the checks on it, say what is done and what remains."""
    results = await check(job, "final")
    await job.journal.flush()
    return Outcome(
        kind="partial",
        failure="budget",
        reason=stop.reason,
        detail=stop.detail,
        checks=results,
        done=tuple(describe(result) for result in results if result.verdict == "pass"),
        remaining=tuple(describe(result) for result in results if result.verdict != "pass")
        or ("the model had not said that the task is done",),
        tree=job.journal.tree,
    )


async def conclude(
    job: Job,
    answer: str,
    results: tuple[CheckResult, ...],
    *,
    rules: str = "",
    provisional: bool = False,
) -> Outcome:
    """The end of an attempt that says it is done: passed, unverified, or failed by its checks.

    `rules` are those of the goal's INDEX.md, which the answer must keep as well. What is
    `provisional` stays unverified when its checks fail: a later task judges it.
    """
    await job.journal.flush()
    done = tuple(describe(result) for result in results if result.verdict == "pass")
    breaches = broken(rules, answer)
    if breaches:
        return Outcome(
            kind="failed",
            failure="logic",
            reason="index_rule",
            detail="; ".join(breaches),
            answer=answer,
            checks=results,
            done=done,
            remaining=tuple(breaches),
            tree=job.journal.tree,
        )
    if proven(results) or not results or provisional:
        return Outcome(
            kind="passed" if proven(results) else "unverified",
            answer=answer,
            checks=results,
            done=done,
            tree=job.journal.tree,
        )
    remaining = tuple(describe(result) for result in results if result.verdict != "pass")
    return Outcome(
        kind="failed",
        failure="logic",
        reason=_unproven(results),
        detail="; ".join(remaining),
        answer=answer,
        checks=results,
        done=done,
        remaining=remaining,
        tree=job.journal.tree,
    )


async def check(job: Job, key: str) -> tuple[CheckResult, ...]:
    """Run the task's checks and postconditions as steps of one round."""
    task = job.bundle.task
    lines = (*task.checks, *task.promises)
    if lines:
        job.sink.show(_progress(job, "checking", ", ".join(lines)))
    found = await verify(job.journal, job.workspace, lines, key=key, policy=task.policy)
    results = tuple(
        result if index < len(task.checks) else replace(result, clause="postcondition")
        for index, result in enumerate(found)
    )
    if task.merges:
        mark = await unmarked(job.journal, job.workspace, task.files, key=key)
        results = (mark, *results)
    for result in results:
        job.sink.show(_progress(job, "check", describe(result)))
    return results


async def preconditions(job: Job) -> Outcome | None:
    """The end of an attempt whose task may not begin; None when everything it asks for holds.

    A policy failure: nothing a model says can make true what must be true before it is asked.
    """
    task = job.bundle.task
    found = await verify(
        job.journal, job.workspace, task.preconditions, key="pre", policy=task.policy
    )
    results = tuple(replace(result, clause="precondition") for result in found)
    for result in results:
        job.sink.show(_progress(job, "check", describe(result)))
    if proven(results) or not results:
        return None
    await job.journal.flush()
    unmet = tuple(describe(result) for result in results if result.verdict != "pass")
    return Outcome(
        kind="failed",
        failure="policy",
        reason="precondition_failed",
        detail="; ".join(unmet),
        checks=results,
        remaining=unmet,
        tree=job.journal.tree,
    )


def _unproven(results: Sequence[CheckResult]) -> str:
    """The reason's word: checks first, then the contract's own clause."""
    clauses = {result.clause for result in results if result.verdict != "pass"}
    return "checks_failed" if "check" in clauses else "postcondition_failed"


def _deadline(job: Job) -> float | None:
    return None if job.clock is None else job.clock.monotonic_s() + job.bundle.task.policy.attempt_s


def _same_reading(key: str, said: Reply, now: Actions) -> None:
    """A parser that reads a recorded reply differently is a divergence of that step."""
    before, after = encode(said.actions), encode(now)
    if before != after:
        where, byte = first_difference(before, after)
        raise Divergence(
            f"step {key} is read differently now: actions.{where} at byte {byte}",
            step=key,
            field=f"actions.{where}",
            byte=byte,
        )


def _signature(actions: Actions) -> str:
    return encode([(call.call.name, call.call.arguments) for call in actions.calls]).decode()


def _progress(job: Job, kind: str, text: str, key: str = "") -> Progress:
    """Progress of this attempt; the key of a step within a turn begins with the turn."""
    goal, task, attempt = job.who
    number = key.partition("/")[0].removeprefix("t")
    return Progress(kind, goal, task, text, attempt, int(number) if number.isdigit() else 0)


def _gist(said: Reply) -> str:
    names = ", ".join(call.call.name for call in said.actions.calls)
    return f"{said.actions.kind} {names}".rstrip()


def _brief(call: Call, observation: Observation) -> str:
    ending = observation.error.code if observation.error else "ok"
    return f"{_target(call)} → {ending}"


def _target(call: Call) -> str:
    """What a call is about, short enough for a line."""
    return str(call.arguments.get("path") or call.arguments.get("command") or "")[:60]
