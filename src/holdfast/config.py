"""Every setting, once: the dataclass is the table behind flags, environment, TOML and docs.

Order of precedence: flag, environment (`HOLDFAST_<NAME>`), `holdfast.toml` or `[tool.holdfast]` of
`pyproject.toml`, default. A setting's help is its `metadata`; units are the last word of its name.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from holdfast.errors import Refused
from holdfast.frozen import frozen


def _setting(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@frozen
class Settings:
    """One frozen value per process. Field names are the setting names everywhere."""

    home: str = _setting("", "where the store and workspaces live; default .holdfast in the repo")
    model: str = _setting(
        "", "provider:model that runs tasks, such as ollama:qwen3:8b; A,B is a chain"
    )
    model_trivial: str = _setting("", "those of trivial tasks; empty: model")
    model_standard: str = _setting("", "those of standard tasks; empty: model")
    model_complex: str = _setting("", "those of complex tasks; empty: model")
    slots: int = _setting(1, "tasks that run at the same time in this process")
    lease_s: float = _setting(5.0, "how long a claim lasts unless it is renewed")
    store_wait_s: float = _setting(
        30.0, "longest a write waits for another process's before it says who holds the store"
    )
    max_turns: int = _setting(0, "model round trips one attempt may take; 0: by tier, 5, 10 or 20")
    max_attempts: int = _setting(3, "attempts that may be lost or fail before a task is exhausted")
    max_takes: int = _setting(2, "journals a task may open: a logic failure starts a fresh one")
    max_verification_retries: int = _setting(
        2, "corrective turns after failed checks before the attempt ends"
    )
    repeat_limit: int = _setting(3, "identical rounds before an attempt stops as repeating")
    stall_limit: int = _setting(6, "rounds without a new observation before it stops as stalled")
    attempt_s: float = _setting(0.0, "wall clock of one attempt; 0: by tier, 600 or 1800")
    agent_planning: bool = _setting(False, "let a model plan a goal; off: a goal is one task")
    plan_tasks_min: int = _setting(3, "fewest tasks a proposed plan may have")
    plan_tasks_max: int = _setting(8, "most tasks a proposed plan, or one split task, may have")
    plan_levels: int = _setting(2, "1: tasks are small at once; 2: big ones are split into units")
    unit_files_max: int = _setting(6, "files one proposed unit may name, new ones included")
    unit_chars_max: int = _setting(4000, "characters of one proposed unit's prompt")
    plan_rounds: int = _setting(2, "follow-ups of failed goal checks before a person is asked")
    budget_tokens: int = _setting(0, "tokens a goal may spend; 0 is no limit")
    budget_usd: float = _setting(0.0, "money a goal may spend; 0 is no limit")
    model_s: float = _setting(600.0, "longest one model reply may take")
    stream: bool = _setting(True, "ask for replies as they come; off: whole, where none can stream")
    bundle_tokens: int = _setting(0, "size of the context a task is given; 0: by its model")
    token_counter: str = _setting(
        "pieces", "what counts it: pieces, or bpe (o200k, by the extra of that name)"
    )
    conversation_tokens: int = _setting(
        0, "size at which old parts of a conversation are shortened; 0: by its model"
    )
    context: str = _setting("plain", "plain, or curated: also retrieval, a map and rules of use")
    context_summary: str = _setting(
        "extract", "what sums up oversized outputs when curated: extract, or model (costs calls)"
    )
    embeddings: str = _setting(
        "", "find past outputs by meaning too: local:all-minilm-l6-v2; empty: by words alone"
    )
    context_order: str = _setting("default", "who gets context first: default, dependencies_first")
    command_s: float = _setting(120.0, "longest a tool's command may run")
    check_s: float = _setting(120.0, "longest one check may run")
    checks_s: float = _setting(600.0, "longest all checks of a round may run together")
    on_failure: str = _setting("keep", "of a failed goal's work: keep it, or undo it at once")
    backoff_ms: int = _setting(500, "first delay before a transient failure is tried again")
    backoff_ms_max: int = _setting(30_000, "longest such delay")
    output_bytes_max: int = _setting(30_000, "bytes of a command's output that are kept, both ends")
    file_bytes_max: int = _setting(1_000_000, "largest file a tool reads or writes")


DEFAULTS = Settings()
NUMBER_MAX = 1e12
_SWITCH = MappingProxyType(
    {
        **dict.fromkeys(("1", "true", "on", "yes"), True),
        **dict.fromkeys(("0", "false", "off", "no"), False),
    }
)


def load(
    start: Path,
    *,
    flags: Mapping[str, Any] = MappingProxyType({}),
    environ: Mapping[str, str] = os.environ,
) -> Settings:
    """Settings for a process working in `start`. Unknown names and wrong types are refused."""
    found: dict[str, Any] = {}
    for source, values in _sources(start, environ):
        for name, value in values.items():
            found[name] = _coerce(name, value, source)
    found.update({name: value for name, value in flags.items() if value is not None})
    for name, value in found.items():
        # Neither NaN nor what no clock, database or sum of money could hold.
        if isinstance(value, int | float) and not abs(value) <= NUMBER_MAX:
            raise Refused(f"{name} is {value}; a number is at most {NUMBER_MAX:.0e}")
    return replace(DEFAULTS, **found)


def environment_name(name: str) -> str:
    return f"HOLDFAST_{name.upper()}"


def dotenv(path: Path) -> dict[str, str]:
    """The assignments of a `.env` file: `KEY=value` lines, quotes optional, `export` allowed."""
    if not path.is_file():
        return {}
    pairs: dict[str, str] = {}
    for line in _text(path).splitlines():
        text = line.strip().removeprefix("export ").strip()
        if not text or text.startswith("#") or "=" not in text:
            continue
        name, _, value = text.partition("=")
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        pairs[name.strip()] = value
    return pairs


def _sources(start: Path, environ: Mapping[str, str]) -> list[tuple[str, Mapping[str, Any]]]:
    sources: list[tuple[str, Mapping[str, Any]]] = []
    pyproject, own = start / "pyproject.toml", start / "holdfast.toml"
    if pyproject.is_file():
        tools = _table(_toml(pyproject).get("tool", {}), f"[tool] of {pyproject}")
        own_table = _table(tools.get("holdfast", {}), f"[tool.holdfast] of {pyproject}")
        sources.append((str(pyproject), own_table))
    if own.is_file():
        sources.append((str(own), _toml(own)))
    from_environment = {
        setting.name: environ[environment_name(setting.name)]
        for setting in fields(Settings)
        if environment_name(setting.name) in environ
    }
    sources.append(("the environment", from_environment))
    return sources


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise Refused(f"{path} is not valid TOML: {error}", hint="mend or remove it") from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{path} cannot be read: {error}", hint="mend or remove it") from error


def _table(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise Refused(f"{name} is no table", hint="mend or remove it")
    return value


def _coerce(name: str, value: Any, source: str) -> Any:
    kinds: dict[str, type[str] | type[int] | type[float] | type[bool]] = {
        setting.name: type(getattr(DEFAULTS, setting.name)) for setting in fields(Settings)
    }
    if name not in kinds:
        raise Refused(f"{source} sets {name!r}, which is no setting", hint=_near(name, kinds))
    kind = kinds[name]
    try:
        if kind is bool:
            return _SWITCH[str(value).strip().lower()]
        if isinstance(value, bool) or (isinstance(value, float) and kind is int):
            raise ValueError(value)
        return kind(value)
    except (KeyError, TypeError, ValueError) as error:
        raise Refused(f"{source} sets {name} to {value!r}, not a {kind.__name__}") from error


def _near(name: str, names: Mapping[str, Any]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415  only on the way to an error

    close = get_close_matches(name, list(names), n=1)
    return f"did you mean {close[0]!r}?" if close else "docs/settings.md lists them"
