"""Prompts are files; this fetches one and fills its `{{name}}` places, nothing more."""

from __future__ import annotations

import re
from pathlib import Path

_PLACE = re.compile(r"\{\{(\w+)\}\}")


def load(name: str) -> str:
    """The text of one prompt file, without the final newline."""
    text = Path(__file__).with_name(f"{name}.md").read_text(encoding="utf-8")
    return text.rstrip("\n")


def fill(template: str, **values: str) -> str:
    """Put values into a template once: a value that itself contains `{{…}}` stays as it is."""
    return _PLACE.sub(lambda match: values[match.group(1)], template)
