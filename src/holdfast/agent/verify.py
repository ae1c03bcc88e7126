"""Checks: deterministic proof, run as steps, so a resumed attempt never runs a recorded one again.

What a check writes is taken back: its effect is compensable and its compensation is the tree before
it. Absent never means pass: no program, no runner, no test or no time left is `absent`.
"""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

import msgspec

from holdfast.adapters.tools.paths import Refusal, place
from holdfast.agent import evidence
from holdfast.agent.conversation import encode
from holdfast.agent.journal import Effectful, Journal, Performed
from holdfast.agent.prompts import fill
from holdfast.domain.checks import Check, read_check
from holdfast.domain.model import CheckResult, Policy, Verdict
from holdfast.domain.ports import CommandResult, Workspace

OUTPUT_CHARS_MAX = 6000
_NOT_FOUND = 127
_NO_PROGRAM = "could not run: its program was not found"


async def verify(
    journal: Journal, workspace: Workspace, checks: Sequence[str], *, key: str, policy: Policy
) -> tuple[CheckResult, ...]:
    """Run every check of a round, also after one failed; `key` names the round in the journal.

    Each has `check_s` seconds, all together `checks_s`. The time left follows from the recorded
    durations, never from a clock, so a resumed or replayed round gives each the same limit.
    """
    results: list[CheckResult] = []
    left_ms = round(policy.checks_s * 1000)
    for index, line in enumerate(checks):
        check, limit_s = read_check(line), min(policy.check_s, left_ms / 1000)
        name = f"{key}/check:{index}"

        async def perform(
            check: Check = check, limit_s: float = limit_s, name: str = name
        ) -> Performed:
            tree = journal.tree
            result = await _judge(check, journal, workspace, limit_s)
            await asyncio.to_thread(workspace.restore, tree)
            return Performed(result=encode(result), events=(evidence.check_output(name, result),))

        content = await journal.step(
            Effectful(
                key=name,
                kind="check",
                effect="compensable",
                request=encode({"check": line, "check_s": limit_s}),
                perform=perform,
            )
        )
        results.append(msgspec.json.decode(content, type=CheckResult))
        left_ms = max(0, left_ms - results[-1].duration_ms)
    return tuple(results)


def proven(results: Sequence[CheckResult]) -> bool:
    """True when there is at least one check and every one passed (I11)."""
    return bool(results) and all(result.verdict == "pass" for result in results)


def corrective(template: str, results: Sequence[CheckResult]) -> str:
    """The turn that returns failed checks to the model."""
    failed = [result for result in results if result.verdict != "pass"]
    return fill(
        template,
        failed=str(len(failed)),
        total=str(len(results)),
        report="\n\n".join(report(result) for result in failed),
    )


def report(result: CheckResult) -> str:
    """A check as a model reads it: what was run or looked for, how it ended, what it printed."""
    prompt = "$ " if result.kind == "command_succeeds" else ""
    return f"{prompt}{result.command}\n{_headline(result)}\n{result.output}".rstrip()


def describe(result: CheckResult) -> str:
    """One line for a person: the check, its clause unless that is `checks`, and how it ended."""
    clause = "" if result.clause == "check" else f"{result.clause} "
    return f"{clause}{result.command}: {_headline(result)}"


async def _judge(
    check: Check, journal: Journal, workspace: Workspace, limit_s: float
) -> CheckResult:
    if limit_s <= 0:
        return _found(check, "absent", "not run: the checks of this round had no time left")
    match check.kind:
        case "command_succeeds":
            return _ran(check, await _run(check.subject, workspace, limit_s))
        case "file_exists":
            return await asyncio.to_thread(_file_exists, check, workspace)
        case "test_passes":
            return await _test_passes(check, workspace, limit_s)
        case "git_clean":
            return await asyncio.to_thread(_git_clean, check, journal.base, workspace)
        case _:
            assert_never(check.kind)


async def _run(command: str, workspace: Workspace, limit_s: float) -> CommandResult:
    return await workspace.sandbox.run(command, root=workspace.root, timeout_s=limit_s)


def _file_exists(check: Check, workspace: Workspace) -> CheckResult:
    """Looks itself, without following a link out of the workspace; a directory is no file."""
    try:
        with place(workspace.root, check.subject) as at:
            kind = at.kind()
    except Refusal as refusal:
        return _found(check, "fail", refusal.message)
    if kind is None:
        return _found(check, "fail", "there is no such file")
    if kind != stat.S_IFREG:
        what = "a directory" if kind == stat.S_IFDIR else "no regular file"
        return _found(check, "fail", f"it is {what}")
    return _found(check, "pass", "the file is there")


def _git_clean(check: Check, base: str, workspace: Workspace) -> CheckResult:
    """Compares trees in the private git directory: git never runs on what commands could write."""
    changed = workspace.changed(base, workspace.stage())
    if not changed:
        return _found(check, "pass", "no file differs from the base")
    output = "\n".join(f"{status} {name}" for status, name in changed)
    return _found(check, "fail", f"{len(changed)} files differ from the base", output=output)


async def _test_passes(check: Check, workspace: Workspace, limit_s: float) -> CheckResult:
    """Runs the project's own runner; one that ran no test proves nothing, however it ended."""
    from holdfast.adapters.runners import RUNNERS, detect  # noqa: PLC0415  of this check alone

    if check.subject:
        name, sign = check.subject, "named by the check"
    else:
        name, sign = await asyncio.to_thread(detect, workspace.root)
    if not name:
        wanted = ", ".join(RUNNERS)
        return _found(check, "absent", f"no test runner was detected; looked for {wanted}")
    runner = RUNNERS[name]
    done = await _run(runner.command, workspace, limit_s)
    result = _ran(check, done)
    verdict: Verdict
    if done.missing_program or done.exit_code == _NOT_FOUND:
        verdict, how = "absent", "its program was not found"
    elif done.exit_code in runner.empty or (
        result.verdict == "pass" and runner.nothing.search(result.output)
    ):
        verdict, how = "absent", "no test was run"
    else:
        verdict, how = result.verdict, _headline(result)
    return replace(result, verdict=verdict, note=f"{name} ({sign}): {how}")


def _ran(check: Check, done: CommandResult) -> CheckResult:
    """The verdict of a command: its exit code is the proof."""
    verdict: Verdict = "fail"
    if done.missing_program:
        verdict = "absent"
    elif done.exit_code == 0 and not done.timed_out:
        verdict = "pass"
    output = (done.stdout + ("\n" + done.stderr if done.stderr else "")).strip()
    if done.timed_out:
        output = f"{output}\n[ended after {done.duration_ms} ms: over its limit]".lstrip()
    return CheckResult(
        command=check.line,
        kind=check.kind,
        verdict=verdict,
        exit_code=done.exit_code,
        output=_both_ends(output),
        duration_ms=done.duration_ms,
    )


def _found(check: Check, verdict: Verdict, note: str, *, output: str = "") -> CheckResult:
    """The verdict of a look: there is no exit code, so a sentence says what was seen."""
    return CheckResult(
        command=check.line, kind=check.kind, verdict=verdict, note=note, output=_both_ends(output)
    )


def _headline(result: CheckResult) -> str:
    if result.note:
        return result.note
    match result.verdict:
        case "pass":
            return "passed"
        case "absent":
            return _NO_PROGRAM
        case "fail":
            return f"failed with exit code {result.exit_code}"


def _both_ends(text: str) -> str:
    if len(text) <= OUTPUT_CHARS_MAX:
        return text
    half = OUTPUT_CHARS_MAX // 2
    cut = len(text) - 2 * half
    return f"{text[:half]}\n[… {cut} characters left out …]\n{text[-half:]}"
