"""Work on a goal until it is done, and prove it by the checks.

  holdfast run "Make the failing test pass" --model ollama:qwen3:8b --check "pytest -q"
  holdfast run "Ship it" --plan plan.toml --model openai:gpt-5-mini --json
  holdfast run "Ship it" --agent-planning --review --check "pytest -q"

Your working tree is never touched: the result is on a branch of its own. Kill it at any moment;
`holdfast resume` goes on where it was. Exit codes: 0 passed, 1 failed, 2 refused, 3 waits for a
person, 4 partial (work kept), 5 unverified (no check), 130 interrupted.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_args

from holdfast.cli.common import add_place, opened, show_result, watching
from holdfast.cli.console import Console
from holdfast.domain.model import Budget, Priority, Tier
from holdfast.errors import Refused


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("goal", help="what you want, in a sentence")
    add_place(parser)
    parser.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="[TIER=]P:M",
        help="provider:model, or A,B: B when A is away; complex=A,B: for tasks of that tier",
    )
    parser.add_argument(
        "--check",
        action="append",
        default=[],
        metavar="CMD",
        help="what proves it: a command, file_exists:PATH, test_passes or git_clean",
    )
    parser.add_argument("--plan", type=Path, metavar="FILE", help="your own plan, TOML or JSON")
    parser.add_argument(
        "--agent-planning",
        action=argparse.BooleanOptionalAction,
        help="let a model plan it first: tasks with files, checks and requirements",
    )
    parser.add_argument(
        "--review", action="store_true", help="stop with the plan proposed, before anything runs"
    )
    parser.add_argument("--budget-usd", type=float, metavar="X", help="money it may spend")
    parser.add_argument("--budget-tokens", type=int, metavar="N", help="tokens it may spend")
    parser.add_argument("--max-turns", type=int, metavar="N", help="round trips per attempt")
    parser.add_argument(
        "--tier", choices=get_args(Tier), default="unknown", help="how hard it is (default: judged)"
    )
    parser.add_argument(
        "--priority", choices=get_args(Priority), default="normal", help="its lane among tasks"
    )
    parser.add_argument("--slots", type=int, metavar="N", help="tasks at the same time")
    parser.add_argument(
        "--strategy",
        choices=("dag", "bfs"),
        default="dag",
        help="which ready task starts first: by priority, or level by level",
    )
    parser.add_argument(
        "--calls", choices=("native", "json"), default="native", help="how tools are called"
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    import asyncio  # like the app: nothing of it is loaded for `--help` or a wrong flag

    from holdfast.app.goals import EXIT, Wish, planning, policy, start, work

    if not arguments.goal.strip():
        raise Refused("the goal is empty", hint='holdfast run "what you want"')
    if arguments.max_turns is not None and arguments.max_turns < 1:
        raise Refused(f"--max-turns is {arguments.max_turns}; it must be at least 1")
    if arguments.plan is not None and (arguments.tier, arguments.priority) != ("unknown", "normal"):
        raise Refused("--tier and --priority are for a goal without a plan", hint="say it per task")
    flags = {
        name: getattr(arguments, name)
        for name in ("budget_usd", "budget_tokens", "max_turns", "slots", "agent_planning")
    } | _models(arguments.model)
    with opened(arguments, console, must_exist=False, flags=flags) as app:
        settings = app.settings
        wish = Wish(
            text=arguments.goal,
            repo=Path(arguments.repo).expanduser(),
            model=settings.model,
            checks=tuple(arguments.check),
            plan=arguments.plan,
            planning=planning(settings) if settings.agent_planning and not arguments.plan else None,
            review=arguments.review,
            policy=policy(settings, arguments.calls),
            tier=arguments.tier,
            priority=arguments.priority,
            budget=Budget(tokens=settings.budget_tokens, usd=settings.budget_usd),
            strategy=arguments.strategy,
        )
        goal = asyncio.run(start(app, wish))
        console.note(f"goal {goal} started; if this process dies: holdfast resume {goal}")
        with watching(app, goal):
            result = work(app, goal, resumed=False)
        show_result(console, result)
        return EXIT[result["outcome"]]


def _models(said: list[str]) -> dict[str, str]:
    """The settings that every `--model` gives; two for the same tasks are refused."""
    found: dict[str, str] = {}
    for setting, models in map(_model, said):
        if setting in found:
            tier = setting.removeprefix("model").replace("_", "") + "="
            chain = f"{tier.removeprefix('=')}{found[setting]},{models}"
            raise Refused(
                "--model is given twice for the same tasks", hint=f"one chain: --model {chain}"
            )
        found[setting] = models
    return found


def _model(said: str) -> tuple[str, str]:
    """The setting that `A,B` or `TIER=A,B` gives, and its value."""
    tier, equals, models = said.partition("=")
    if not equals or ":" in tier:
        return "model", said
    if tier not in (tiers := get_args(Tier)):
        raise Refused(f"{tier!r} in --model {said} is no tier", hint=f"one of {', '.join(tiers)}")
    return ("model" if tier == "unknown" else f"model_{tier}"), models
