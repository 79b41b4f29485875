"""Task semantics: TF-IDF over words, reduced by a singular value decomposition. Nothing is downloaded."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from envsched.graph.profile import words

Matrix = npt.NDArray[np.float32]

MOST_WORDS = 20_000
FITTED_ON = 20_000
"""Texts on which the decomposition is fitted; the rest is projected."""


def embed_texts(texts: Sequence[str], dimensions: int = 64) -> Matrix:
    """Unit rows [len(texts), dimensions] whose inner products are cosines; of zeros for a text without words.

    A function of the texts alone: no state, no random start. Missing directions are columns of zeros.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.utils.extmath import randomized_svd

    embedding = np.zeros((len(texts), dimensions), dtype=np.float32)
    if not any(words(text) for text in texts):
        return embedding
    vectorizer = TfidfVectorizer(
        tokenizer=words, token_pattern=None, lowercase=False, sublinear_tf=True, max_features=MOST_WORDS
    )
    weighted = vectorizer.fit_transform(texts).astype(np.float32)
    spread = np.unique(np.linspace(0, len(texts) - 1, FITTED_ON).astype(int))
    most = min(dimensions, *weighted.shape)
    _, _, directions = randomized_svd(weighted[spread], most, n_iter=5, random_state=0)
    embedding[:, : len(directions)] = weighted @ directions.T
    return unit_rows(embedding)


def unit_rows(matrix: Matrix) -> Matrix:
    """Rows scaled to length 1; rows of zeros stay."""
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    rows: Matrix = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 1e-12)
    return rows
