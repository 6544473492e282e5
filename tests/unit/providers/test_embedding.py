"""Texts as vectors: the vocabulary, the file of the weights, the model, and messages about missing parts."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from moot.errors import ProviderError, UsageError
from moot.providers.e5 import E5, Packed, Pieces, unpacked
from moot.providers.embedding import is_available, load_embedder
from moot.providers.weights import EMBEDDING, find, find_any, installed_weights, weights_path
from small_weights import PIECES, REAL, REPLACED, SCORES, WIDTH, needs_real, packed, write

UNKNOWN = 3
VOCABULARY = Pieces(PIECES, SCORES, UNKNOWN, REPLACED)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("weights") / "small.bin")


@pytest.fixture(scope="module")
def model(weights: Path) -> E5:
    return E5(weights)


def likelihood(numbers: list[int]) -> float:
    unlikely = min(SCORES) - 10
    return sum(unlikely if number == UNKNOWN else SCORES[number] for number in numbers)


def ways(text: str) -> list[list[int]]:
    """Return every way to split a text into pieces."""
    if not text:
        return [[]]
    found = [[UNKNOWN, *rest] for rest in ways(text[1:])]
    for number, piece in enumerate(PIECES):
        if number != UNKNOWN and text.startswith(piece):
            found += [[number, *rest] for rest in ways(text[len(piece) :])]
    return found


@given(some.text("cats the!", max_size=7))
def test_a_text_is_split_into_the_most_likely_pieces(text: str) -> None:
    plain = " ".join(piece for piece in text.split(" ") if piece)
    spaced = f"{' ' * text.startswith(' ')}{plain}{' ' * (text.endswith(' ') and bool(plain))}"
    whole = (spaced if spaced.startswith(" ") else f" {spaced}").replace(" ", "\u2581")
    assert likelihood(VOCABULARY.numbers(text)) == pytest.approx(max(map(likelihood, ways(whole))))


def test_characters_are_normalized_as_in_the_vocabulary() -> None:
    named = [PIECES[number] for number in VOCABULARY.numbers("the  cAts ﬁ☃")]
    assert named == ["\u2581the", "\u2581cat", "s", "\u2581", "f", "i", "<unk>"]
    assert VOCABULARY.numbers("e\u0301") == VOCABULARY.numbers("é")


@given(some.integers(0, 2**32))
def test_four_bit_numbers_are_restored_within_half_a_step(seed: int) -> None:
    rows = np.random.default_rng(seed).normal(0, 1, (2, 64)).astype(np.float32)
    blocks = np.frombuffer(packed(rows), np.dtype([("scale", "<f2"), ("bits", "u1", (16,))])).reshape(2, 2)
    steps = np.abs(rows.reshape(2, 2, 32)).max(axis=2) / 7
    assert (np.abs(unpacked(blocks) - rows).reshape(2, 2, 32) <= steps[..., None] * 0.51 + 1e-3).all()


def test_the_model_matches_its_definition(model: E5, weights: Path) -> None:
    file = Packed.open(weights)
    ids = [0, *VOCABULARY.numbers("query: the cat"), 2]

    def matrix(name: str, width: int) -> list[list[float]]:
        return unpacked(file.blocks(name, width)).tolist()

    def linear(x: list[list[float]], name: str) -> list[list[float]]:
        rows, bias = matrix(f"{name}.w", len(x[0])), file.floats(f"{name}.b").tolist()
        return [[sum(a * b for a, b in zip(row, line, strict=True)) + more for line, more in zip(rows, bias, strict=True)] for row in x]

    def norm(x: list[list[float]]) -> list[list[float]]:
        found = []
        for row in x:
            mean = sum(row) / len(row)
            spread = math.sqrt(sum((one - mean) ** 2 for one in row) / len(row) + 1e-12)
            found.append([(one - mean) / spread for one in row])
        return found

    def added(x: list[list[float]], y: list[list[float]]) -> list[list[float]]:
        return [[a + b for a, b in zip(one, other, strict=True)] for one, other in zip(x, y, strict=True)]

    words, places = matrix("emb.word", WIDTH), file.floats("emb.pos").reshape(-1, WIDTH).tolist()
    x = norm(added([words[id] for id in ids], places[: len(ids)]))
    size = WIDTH // file.heads
    for layer in range(file.layers):
        query, key, value = (linear(x, f"l{layer}.{name}") for name in "qkv")
        mixed = [[0.0] * WIDTH for _ in ids]
        for head in range(0, WIDTH, size):
            for at in range(len(ids)):
                near = [math.exp(sum(query[at][i] * other[i] for i in range(head, head + size)) / math.sqrt(size)) for other in key]
                for i in range(head, head + size):
                    mixed[at][i] = sum(share * other[i] for share, other in zip(near, value, strict=True)) / sum(near)
        x = norm(added(x, linear(mixed, f"l{layer}.ao")))
        inner = [[one * 0.5 * (1 + math.erf(one / math.sqrt(2))) for one in row] for row in linear(x, f"l{layer}.fi")]
        x = norm(added(x, linear(inner, f"l{layer}.fo")))
    mean = np.array(x).mean(axis=0)
    ours = np.frombuffer(model.embed("the cat", question=True), np.int8)
    assert np.abs(ours - mean * (127 / np.abs(mean).max())).max() <= 0.51


def test_likeness_is_the_cosine_and_only_the_beginning_of_a_long_text_counts(model: E5) -> None:
    vectors = [model.embed(text, question=False) for text in ("the cat", "a dog sits", "the cats")]
    as_numbers = [np.frombuffer(vector, np.int8).astype(float) for vector in vectors]
    first = as_numbers[0]
    expected = [float(first @ other / np.linalg.norm(first) / np.linalg.norm(other)) for other in as_numbers]
    assert model.near(vectors[0], vectors) == pytest.approx(expected, abs=1e-5)
    assert model.near(vectors[0], []) == []
    assert model.embed("cat " * 500, question=False) == model.embed("cat " * 900, question=False)
    assert len(model.embed("", question=True)) == WIDTH


@pytest.mark.parametrize("keep", [0, 3, 60, 400, 5_000])
def test_damaged_weights_are_reported(tmp_path: Path, weights: Path, keep: int) -> None:
    damaged = tmp_path / "damaged.bin"
    damaged.write_bytes(weights.read_bytes()[:keep])
    with pytest.raises(ProviderError, match=r"damaged\.bin.* is not a valid weights file") as caught:
        E5(damaged)
    assert caught.value.fix == "Delete it, then run `moot models pull e5-small`."


def test_without_weights_the_download_command_is_shown(tmp_path: Path) -> None:
    assert not is_available(tmp_path)
    with pytest.raises(UsageError, match="72 MB") as caught:
        load_embedder(tmp_path)
    assert caught.value.fix == "moot models pull e5-small"


def test_without_the_extra_its_name_is_shown(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "sys.path[:] = [one for one in sys.path if 'site-packages' not in one]\n"
        "from moot.providers.embedding import load_embedder\n"
        "try: load_embedder(Path('.'))\n"
        "except Exception as error: print(error.fix)"
    )
    # without the package folder: it gets only what `having` itself imports
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=30)
    assert ended.stdout == "pip install 'moot[semantic]'\n", ended.stderr


def test_embedding_weights_are_not_a_chat_model(tmp_path: Path) -> None:
    kept = tmp_path / "data" / "models" / find_any(EMBEDDING).file
    kept.parent.mkdir(parents=True)
    with kept.open("wb") as file:
        file.truncate(find_any(EMBEDDING).size)
    assert weights_path(EMBEDDING, tmp_path) == kept
    assert installed_weights(tmp_path) == []
    with pytest.raises(UsageError, match="Weights 'e5-small' not found"):
        find(EMBEDDING)


@needs_real
def test_the_real_weights_place_similar_texts_close_together() -> None:
    model = E5(REAL)
    texts = ["Die Soße zum Braten ist zu salzig", "git rebase brings the same conflict again", "容器里的时间比北京时间慢八个小时"]
    vectors = [model.embed(text, question=False) for text in texts]
    for at, question in enumerate(
        ("how to rescue an oversalted gravy", "conflicto que se repite al hacer rebase", "wrong clock inside docker")
    ):
        near = model.near(model.embed(question, question=True), vectors)
        assert max(range(3), key=near.__getitem__) == at
