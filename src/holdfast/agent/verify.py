"""Checks: deterministic proof, run as steps, so a resumed attempt never runs a recorded one again.

What a check writes is taken back: its effect is compensable and its compensation is the tree before
it. Absent never means pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from holdfast.agent import evidence
from holdfast.agent.conversation import encode
from holdfast.agent.journal import Effectful, Journal, Performed
from holdfast.agent.prompts import fill
from holdfast.domain.model import CheckResult, Verdict
from holdfast.domain.ports import CommandResult, Workspace

OUTPUT_CHARS_MAX = 6000


async def verify(
    journal: Journal, workspace: Workspace, checks: Sequence[str], *, key: str, check_s: float
) -> tuple[CheckResult, ...]:
    """Run every check of a round, also after one failed; `key` names the round in the journal."""
    results: list[CheckResult] = []
    for index, command in enumerate(checks):
        name = f"{key}/check:{index}"

        async def perform(command: str = command, name: str = name) -> Performed:
            tree = journal.tree
            done = await workspace.sandbox.run(command, root=workspace.root, timeout_s=check_s)
            await asyncio.to_thread(workspace.restore, tree)
            result = _judge(command, done)
            return Performed(result=encode(result), events=(evidence.check_output(name, result),))

        content = await journal.step(
            Effectful(
                key=name,
                kind="check",
                effect="compensable",
                request=encode({"check": command, "check_s": check_s}),
                perform=perform,
            )
        )
        results.append(msgspec.json.decode(content, type=CheckResult))
    return tuple(results)


def proven(results: Sequence[CheckResult]) -> bool:
    """True when there is at least one check and every one passed (I11)."""
    return bool(results) and all(result.verdict == "pass" for result in results)


def corrective(template: str, results: Sequence[CheckResult]) -> str:
    """The turn that returns failed checks to the model."""
    failed = [result for result in results if result.verdict != "pass"]
    parts = [
        f"$ {result.command}\n{_headline(result)}\n{result.output}".rstrip() for result in failed
    ]
    return fill(
        template, failed=str(len(failed)), total=str(len(results)), report="\n\n".join(parts)
    )


def describe(result: CheckResult) -> str:
    """One line for a person: the command and how it ended."""
    return f"{result.command}: {_headline(result)}"


def _judge(command: str, done: CommandResult) -> CheckResult:
    verdict: Verdict = "fail"
    if done.missing_program:
        verdict = "absent"
    elif done.exit_code == 0 and not done.timed_out:
        verdict = "pass"
    output = (done.stdout + ("\n" + done.stderr if done.stderr else "")).strip()
    if done.timed_out:
        output = f"{output}\n[ended after {done.duration_ms} ms: over its limit]".lstrip()
    return CheckResult(
        command=command,
        verdict=verdict,
        exit_code=done.exit_code,
        output=_both_ends(output),
        duration_ms=done.duration_ms,
    )


def _headline(result: CheckResult) -> str:
    match result.verdict:
        case "pass":
            return "passed"
        case "absent":
            return "could not run: its program was not found"
        case "fail":
            return f"failed with exit code {result.exit_code}"


def _both_ends(text: str) -> str:
    if len(text) <= OUTPUT_CHARS_MAX:
        return text
    half = OUTPUT_CHARS_MAX // 2
    cut = len(text) - 2 * half
    return f"{text[:half]}\n[… {cut} characters left out …]\n{text[-half:]}"
