"""Supervised start of a small model on noisy experts: `python -m envsched.policy.warm_start DIRECTORY`.

Runs in a process of its own, so that its threads and memory are gone before rollouts begin. The settings come
as JSON on standard input; progress leaves as JSON lines on standard output.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from envsched.config import Settings
from envsched.environments.registry import load_registry
from envsched.environments.synthetic import generate
from envsched.policy.demonstrations import Demonstrator, tokenizer_texts
from envsched.policy.model import new_model
from envsched.policy.muon import Muon
from envsched.policy.tokenizer import train_tokenizer
from envsched.rollouts.chat import Chat
from envsched.rollouts.engine import write_version

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Conversation = tuple[list[int], list[bool]]

ROWS = 4
"""Conversations in one forward pass; of similar length, and few enough for the processor's caches."""
VECTOR_RATE = 0.2
"""AdamW's rate for embeddings and norms, as a share of Muon's for matrices."""
CLEAN = 0.65
"""Share of the steps on experts without noise: copying of names is learnt there, which noise would blur."""
WARMUP, DECAY = 0.05, 0.9
"""Shares of the steps in which the rate rises and falls."""


def warm_start(settings: Settings, directory: Path, report: Callable[[int, float], object]) -> None:
    """Train a tokenizer and a model of size `settings.policy.model` and write them to `directory`.

    `report` is told the number of steps done and the mean loss per generated token, in nats.
    """
    environments = settings.environments.model_copy(update={"source": "synthetic", "limit": None})
    nodes = load_registry(environments).train
    suite = generate(environments.suite_seed)
    tokenizer = train_tokenizer(tokenizer_texts(suite, nodes, seed=0), settings.policy.vocabulary)
    model = new_model(settings.policy.model, tokenizer, settings.rollouts.context_tokens, seed=0)
    demonstrator, chat = Demonstrator(environments.suite_seed, nodes, seed=0), Chat(tokenizer, "compact")
    clean = round(settings.warm_start.steps * CLEAN) * settings.warm_start.batch_size
    conversations = chain(
        islice(demonstrator.conversations(chat, 0.0), clean),
        demonstrator.conversations(chat, settings.warm_start.noise),
    )
    imitate(model, conversations, settings, report)
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    write_version(directory, 0)


def imitate(
    model: PreTrainedModel,
    conversations: Iterator[Conversation],
    settings: Settings,
    report: Callable[[int, float], object],
) -> None:
    """Minimise the cross-entropy of what the experts wrote. Muon for matrices, AdamW for the rest."""
    options = settings.warm_start
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    vectors = [p for n, p in model.named_parameters() if p.ndim != 2 or "embed" in n]
    # Parts of a batch side by side, a thread each, use the cores better than threads inside each operation.
    torch.set_num_threads(1)
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        optimizers: list[torch.optim.Optimizer] = [
            Muon(matrices, options.learning_rate, workers=workers),
            torch.optim.AdamW(
                vectors, lr=options.learning_rate * VECTOR_RATE, betas=(0.9, 0.98), weight_decay=0.0
            ),
        ]
        schedules = [
            torch.optim.lr_scheduler.LambdaLR(o, lambda step: _rate(step, options.steps)) for o in optimizers
        ]
        for step in range(options.steps):
            batch = list(islice(conversations, options.batch_size))
            loss = _differentiate(model, batch, workers)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for optimizer, schedule in zip(optimizers, schedules, strict=True):
                optimizer.step()
                schedule.step()
            report(step + 1, loss)


def _differentiate(model: PreTrainedModel, batch: list[Conversation], workers: Executor) -> float:
    """Set the gradient of the batch's mean loss per written token; returns that loss."""
    written = sum(sum(mask) for _, mask in batch)
    # The longest first: whoever is done early takes a short part at the end.
    ordered = sorted(batch, key=lambda conversation: -len(conversation[0]))
    parts = [ordered[start : start + ROWS] for start in range(0, len(ordered), ROWS)]
    parameters = list(model.parameters())

    def one(part: list[Conversation]) -> tuple[float, tuple[Tensor, ...]]:
        ids, mask = _pad(part)
        hidden = model.get_decoder()(input_ids=ids, use_cache=False).last_hidden_state
        logits = model.get_output_embeddings()(hidden[:, :-1][mask[:, 1:]])
        loss = cross_entropy(logits, ids[:, 1:][mask[:, 1:]], reduction="sum") / written
        return loss.item(), torch.autograd.grad(loss, parameters)

    losses, gradients = zip(*workers.map(one, parts), strict=True)
    for parameter, *shares in zip(parameters, *gradients, strict=True):
        parameter.grad = torch.stack(shares).sum(0)
    return float(sum(losses))


def _pad(rows: list[Conversation]) -> tuple[Tensor, Tensor]:
    """int64 and bool [rows, longest]; what follows a conversation is never looked at."""
    width = max(len(ids) for ids, _ in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros(len(rows), width, dtype=torch.bool)
    for row, (tokens, written) in enumerate(rows):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        mask[row, : len(written)] = torch.tensor(written)
    return ids, mask


def _rate(step: int, steps: int) -> float:
    """Rises linearly, stays, and falls linearly to 0."""
    return min(1.0, (step + 1) / (WARMUP * steps + 1), (steps - step) / (DECAY * steps + 1))


def main() -> None:
    """Warm-start as told on standard input."""
    settings = Settings.model_validate_json(sys.stdin.read())
    out = sys.stdout
    sys.stdout = sys.stderr  # libraries print; the channel is ours alone

    def report(step: int, loss: float) -> None:
        print(json.dumps({"step": step, "loss": loss}), file=out, flush=True)

    warm_start(settings, Path(sys.argv[1]), report)


if __name__ == "__main__":
    main()
