"""Embeddings are TF-IDF cosines as far as their dimensions go."""

import math
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsched.graph.profile import words
from envsched.graph.text import embed_texts, unit_rows

VOCABULARY = ("book", "a", "room", "cancel", "the", "order", "refund", "guest", "send", "invoice")
texts_of_words = st.lists(st.lists(st.sampled_from(VOCABULARY), max_size=6).map(" ".join), max_size=12)


def tfidf(texts: list[str]) -> np.ndarray:
    """Unit rows over the vocabulary: (1 + ln count) x (ln((1 + n) / (1 + texts with the word)) + 1)."""
    counts = [Counter(words(text)) for text in texts]
    vocabulary = sorted({word for count in counts for word in count})
    rows = np.zeros((len(texts), len(vocabulary)))
    for column, word in enumerate(vocabulary):
        rarity = math.log((1 + len(texts)) / (1 + sum(word in count for count in counts))) + 1
        for row, count in enumerate(counts):
            if word in count:
                rows[row, column] = (1 + math.log(count[word])) * rarity
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)


@given(texts_of_words)
@settings(deadline=None, max_examples=40, derandomize=True)
def test_with_enough_dimensions_inner_products_are_the_cosines(texts: list[str]) -> None:
    slow, fast = tfidf(texts), embed_texts(texts, 16)
    assert fast.shape == (len(texts), 16)
    np.testing.assert_allclose(fast @ fast.T, slow @ slow.T, atol=1e-5)


@given(texts_of_words, st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=25, derandomize=True)
def test_order_of_the_texts_changes_no_similarity(texts: list[str], rng: random.Random) -> None:
    mixed = rng.sample(range(len(texts)), len(texts))
    plain, shuffled = embed_texts(texts, 16), embed_texts([texts[i] for i in mixed], 16)
    np.testing.assert_allclose(shuffled @ shuffled.T, (plain @ plain.T)[np.ix_(mixed, mixed)], atol=1e-5)


def test_few_dimensions_keep_the_main_directions() -> None:
    rng = np.random.default_rng(0)
    topics = [[f"{letter}{i}" for i in "xyzuvw"] for letter in "abcd"]
    texts = [" ".join(rng.choice(topics[i % 4], 5)) for i in range(80)]
    rows = embed_texts(texts, 4)
    directions = np.linalg.svd(tfidf(texts), full_matrices=False)[2][:4]
    slow = unit_rows((tfidf(texts) @ directions.T).astype(np.float32))
    np.testing.assert_allclose(rows @ rows.T, slow @ slow.T, atol=0.02)
    same = np.arange(80) % 4 == np.arange(80)[:, None] % 4
    assert (rows @ rows.T)[same].min() > 0.5 > (rows @ rows.T)[~same].max()


def test_embeddings_are_a_function_of_the_texts_alone() -> None:
    texts = [f"{a} the {b} room" for a in VOCABULARY for b in VOCABULARY]
    np.testing.assert_array_equal(embed_texts(texts, 5), embed_texts(texts, 5))


@pytest.mark.parametrize("texts", [[], ["", "!?"], ["one lonely text"], ["word", "", "word word"]])
@pytest.mark.filterwarnings("error")
def test_rows_have_length_one_or_no_words(texts: list[str]) -> None:
    lengths = np.linalg.norm(embed_texts(texts, 8), axis=1)
    np.testing.assert_allclose(lengths, [float(bool(words(text))) for text in texts], atol=1e-6)


def test_texts_beyond_the_sample_are_placed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"{VOCABULARY[i % 10]} {VOCABULARY[i // 10]}" for i in range(100)]
    whole = embed_texts(texts, 16)
    monkeypatch.setattr("envsched.graph.text.FITTED_ON", 40)
    sampled = embed_texts(texts, 16)
    np.testing.assert_allclose(sampled @ sampled.T, whole @ whole.T, atol=1e-4)


def test_zero_rows_stay_zero() -> None:
    rows = unit_rows(np.array([[3, 4], [0, 0]], dtype=np.float32))
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, 0]], atol=1e-7)
