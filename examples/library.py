"""Holdfast as a library: one goal with a tool of your own, played by a script, no key needed.

Run: python examples/library.py
"""

import asyncio
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.app import build
from holdfast.app.goals import Wish, start, work
from holdfast.config import Settings
from holdfast.domain.ports import Observation, ToolSpec, Workspace

SCRIPT = """
[[rules]]
[[rules.replies]]
text = "I ask for the release name."
calls = [{ name = "release_name", arguments = { version = "1.0" } }]
[[rules.replies]]
text = "Now I write it down."
calls = [{ name = "write_file", arguments = { path = "RELEASE", content = "Steady Hand\\n" } }]
[[rules.replies]]
text = "The release is named."
"""


class ReleaseName:
    """A tool is a spec and a call. `pure` says: nothing changes, so it may be asked again."""

    spec = ToolSpec(
        name="release_name",
        description="The name of a release.",
        parameters={
            "type": "object",
            "properties": {"version": {"type": "string"}},
            "required": ["version"],
            "additionalProperties": False,
        },
        effect="pure",
    )

    async def call(self, arguments: Mapping[str, Any], workspace: Workspace) -> Observation:
        return Observation(
            tool="release_name", success=True, output=f"{arguments['version']}: Steady Hand"
        )


def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        repo = folder / "repo"
        subprocess.run(["git", "init", "-q", str(repo)], check=True)
        script = folder / "script.toml"
        script.write_text(SCRIPT, encoding="utf-8")
        app = build(Settings(), home=repo / ".holdfast", tools={"release_name": ReleaseName()})
        try:
            wish = Wish(
                text="Name the release",
                repo=repo,
                model=f"scripted:{script}",
                checks=("grep -q Steady RELEASE",),
            )
            goal = asyncio.run(start(app, wish))
            result = work(app, goal, resumed=False)
        finally:
            app.close()
        print(f"goal {goal}: {result['state']}, {result['outcome']}, on {result['branch']}")
        assert result["outcome"] == "passed"


if __name__ == "__main__":
    main()
