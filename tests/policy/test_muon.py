"""Muon against torch's own and against a singular value decomposition."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from envsched.policy.muon import Muon, orthogonalize

SHAPES = ((6, 4), (4, 6), (6, 4), (5, 5))


def test_singular_values_move_to_one_and_directions_stay() -> None:
    matrices = torch.randn(3, 12, 7, generator=torch.Generator().manual_seed(0))
    result = orthogonalize(matrices)
    left, _, right = torch.linalg.svd(matrices, full_matrices=False)
    inside = left.mT @ result @ right.mT
    values = torch.diagonal(inside, dim1=1, dim2=2)
    assert torch.allclose(inside, torch.diag_embed(values), atol=1e-4)
    assert values.min() > 0.5
    assert values.max() < 1.3


@pytest.mark.parametrize("threads", [0, 2])
def test_moves_as_torch_does(threads: int) -> None:
    generator = torch.Generator().manual_seed(1)
    ours = [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in SHAPES]
    theirs = [torch.nn.Parameter(p.detach().clone()) for p in ours]
    reference = torch.optim.Muon(theirs, lr=0.1, weight_decay=0.0)
    with ThreadPoolExecutor(threads or 1) as workers:
        optimizer = Muon(ours, 0.1, workers=workers if threads else None)
        for _ in range(4):
            for mine, other in zip(ours, theirs, strict=True):
                mine.grad = torch.randn(mine.shape, generator=generator)
                other.grad = mine.grad.clone()
            optimizer.step()
            reference.step()
    for mine, other in zip(ours, theirs, strict=True):
        assert torch.allclose(mine, other, atol=0.03)  # bfloat16 on their side


def test_matrices_without_a_gradient_stay() -> None:
    still, moved = (torch.nn.Parameter(torch.ones(3, 3)) for _ in range(2))
    moved.grad = torch.eye(3)
    Muon([still, moved], 0.1).step()
    assert torch.equal(still, torch.ones(3, 3))
    assert not torch.equal(moved, torch.ones(3, 3))
