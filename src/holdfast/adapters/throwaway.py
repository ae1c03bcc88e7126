"""A small repository inside a workspace, for commands that ask git: `status`, `diff`, `log`.

Made once, before anything untrusted ran in the directory, and never read by Holdfast again. It
holds one commit of the base. A base over the limits gets a repository without a commit instead:
copying its objects would cost more than commands gain, and they need no history to work.
"""

from __future__ import annotations

from pathlib import Path

from holdfast.adapters.git import Git, signature

FILES_MAX = 5_000
BYTES_MAX = 50_000_000

_CONFIG = "[user]\n\tname = holdfast\n\temail = holdfast@localhost\n[gc]\n\tauto = 0\n"


def make_throwaway(root: Path, private: Git, tree: str) -> None:
    """Make `root/.git` with one commit of `tree`, whose files lie in `root` already."""
    own = Git(git_dir=root / ".git", work_tree=root, settings={"core.fsync": "none"})
    form = private.word("rev-parse", "--show-object-format")
    own.run("init", "-q", "--template=", "--initial-branch=main", f"--object-format={form}")
    with (root / ".git" / "config").open("a") as config:
        config.write(_CONFIG)
    rows = private.run("ls-tree", "-r", "-l", "-z", "--full-tree", tree).split(b"\0")
    sizes = [row.split(None, 4)[3] for row in rows if row]
    if len(sizes) > FILES_MAX or sum(int(size) for size in sizes if size != b"-") > BYTES_MAX:
        return
    commit = private.word("commit-tree", tree, "-m", "base", environment=signature(0))
    pack = private.run("pack-objects", "--revs", "--stdout", "-q", stdin=f"{commit}\n".encode())
    own.run("index-pack", "--stdin", stdin=pack)
    own.run("update-ref", "refs/heads/main", commit)
    own.run("read-tree", commit)
    # The status of submodules is not asked, so this reads only files of ours.
    own.run("update-index", "-q", "--ignore-submodules", "--refresh", ok=(0, 1))
