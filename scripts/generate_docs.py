"""Writes the pages of docs/ that are made from tables of the source; `make docs` runs it.

`pages()` gives each page's text, so that a test can say when one has rotted.
"""

import io
import os
import re
from contextlib import redirect_stdout
from dataclasses import fields
from pathlib import Path

from holdfast import cli
from holdfast.adapters.models.hosts import HOSTS
from holdfast.adapters.models.prices import table_date
from holdfast.config import Settings, environment_name
from holdfast.domain.lifecycle import MACHINES, diagram
from holdfast.trace.events import FIELDS

ROOT = Path(__file__).parents[1]
PRICES = ROOT / "src/holdfast/adapters/models/prices.toml"
MADE = "<!-- Made by `make docs` from the source; edits here are lost. -->\n\n"


def pages() -> dict[str, str]:
    """Every generated page by its path below the repository's top."""
    return {
        "docs/settings.md": MADE + settings(),
        "docs/lifecycles.md": MADE + lifecycles(),
        "docs/commands.md": MADE + commands(),
        "docs/events.md": MADE + events(),
        "docs/providers.md": MADE + providers(),
    }


def settings() -> str:
    rows = ["| Setting | Environment | Default | Meaning |", "|---|---|---|---|"]
    for setting in fields(Settings):
        default = repr(setting.default) if setting.default != "" else "none"
        rows.append(
            f"| `{setting.name}` | `{environment_name(setting.name)}` | {default} "
            f"| {setting.metadata['help']} |"
        )
    head = (
        "# Settings\n\nIn this order: flag, environment, `holdfast.toml` or `[tool.holdfast]` in "
        "`pyproject.toml`, default. A `.env` beside the home is read below the environment.\n\n"
    )
    return head + "\n".join(rows) + "\n"


def lifecycles() -> str:
    parts = ["# Lifecycles\n\nThe rows of `domain/lifecycle.py`, drawn."]
    parts += [
        f"## {machine.capitalize()}\n\n```mermaid\n{diagram(machine)}```" for machine in MACHINES
    ]
    return "\n\n".join(parts) + "\n"


def commands() -> str:
    parts = ["# Commands\n\n```\n" + cli.overview() + "```"]
    for row in cli.COMMANDS:
        parts.append(f"## holdfast {row.name}\n\n```\n{_help(row.name)}```")
    return "\n\n".join(parts) + "\n"


def events() -> str:
    rows = ["| Kind | Field | Stored as |", "|---|---|---|"]
    for kind, known in FIELDS.items():
        rows += [f"| `{kind}` | `{name}` | `{field.short}` |" for name, field in known.items()]
    head = (
        "# Events\n\n`holdfast events --json` prints JSON lines with `seq`, `at_ms`, `type`, "
        "`goal`, `task` and `attempt`. A `transition` adds `machine`, `entity`, `source`, `event`, "
        "`target` and, where there is one, `reason`. The five kinds of evidence add these fields; "
        "the store keeps them under their short names.\n\n"
    )
    return head + "\n".join(rows) + "\n"


def providers() -> str:
    rows = ["| Provider | Key | Another address | Extra |", "|---|---|---|---|"]
    for name, host in HOSTS.items():
        keys = " or ".join(f"`{key}`" for key in host.keys)
        notes = {"either": " (not with an address of yours)", "address": " (if it wants one)"}
        needed = " (needed)" if host.needs in ("address", "both") else ""
        extra = f"`{host.extra}`" if host.extra else ""
        rows.append(
            f"| `{name}` | {keys}{notes.get(host.needs, '')} | `{host.address}`{needed} | {extra} |"
        )
    head = """# Providers

`--model PROVIDER:NAME`, `--model A,B` for a chain, `--model complex=A,B` for a tier of its own.
Beside the rows there are `ollama:NAME` (`OLLAMA_HOST`), `scripted:FILE` and `replay:ATTEMPT`. An
extra is installed with `pip install 'holdfast[EXTRA]'`, all of them with `holdfast[providers]`;
`holdfast doctor` lists what is there. A key or an address that is missing is one line and
exit code 2, before any goal.

"""
    tail = """
- Bedrock also reads `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN` and `AWS_REGION`; Azure
  `OPENAI_API_VERSION`, unless the endpoint ends in `/v1`; Snowflake `SNOWFLAKE_ACCOUNT`; Google
  Cloud, with a project for a key, `GOOGLE_CLOUD_LOCATION` and the machine's own credentials.
- A chain moves to its next model when one is away, has no credit, does not take the key, does not
  exist or filters the content (final for that model, not for another); it says when and why, and
  `holdfast why ATTEMPT` says it again. What no model could answer (a request that is wrong or too
  long) stands.
- No client retries by itself: every call is one step of the journal. Prompt caching is asked for
  wherever the provider takes marks (Anthropic, Claude and Nova on Bedrock, Claude and Gemini on
  OpenRouter); the others cache by themselves.
- Of pydantic-ai's providers these are left out: what is no chat (`openai-decisions`,
  `google-decisions`, `typesafe`), what signs a person in (`openai-codex`, `openai-chatgpt`), its
  own gateway, and `github`, which was retired. `openai` is the chat dialect, `openai-responses`
  the other.
- The price table (of {day}) has no rows for {unpriced}:
  their prices are nowhere collected, or your own. A model without a price runs with its price shown
  as unknown and without a `--budget-usd`; a row in `prices.toml` of the home prices any model.
"""
    table = set(re.findall(r'^"([^:"]+):', PRICES.read_text(encoding="utf-8"), re.MULTILINE))
    unpriced = ", ".join(f"`{name}`" for name in HOSTS if name not in table)
    tail = tail.format(day=table_date(), unpriced=unpriced)
    return head + "\n".join(rows) + "\n" + tail


def _help(word: str) -> str:
    os.environ["COLUMNS"] = "100"
    heard = io.StringIO()
    with redirect_stdout(heard):
        cli.main([word, "--help"])
    return heard.getvalue()


if __name__ == "__main__":
    for name, text in pages().items():
        (ROOT / name).write_text(text, encoding="utf-8")
