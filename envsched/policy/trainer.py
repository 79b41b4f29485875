"""The policy on a DeepSpeed engine: one rank's share of every update."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from envsched.policy.batches import MicroBatch, Sample, collate, micro_batches, samples, split
from envsched.policy.grpo import Clip, token_loss
from envsched.policy.weights import companions, publishing, rank, save_policy, world_size
from envsched.rollouts.rollout import Group

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from envsched.config import UpdateSettings

OPTIMIZER = "deepspeed"
"""Folder of the optimiser's state in a policy directory."""


class TokenLogprobs(nn.Module):
    """A causal language model that returns the log-probabilities of chosen next tokens only.

    Logits are made at those positions alone: with a large vocabulary they would dominate memory.
    """

    def __init__(self, model: PreTrainedModel, temperature: float) -> None:
        super().__init__()
        self.model = model
        self.temperature = temperature

    def forward(self, batch: MicroBatch) -> tuple[Tensor, Tensor]:
        """Log-probability [N] of each target, and entropy [N] of the distribution it was drawn from."""
        decoder = self.model.get_decoder()
        # Without a mask attention is causal, which is faster; padding stands where no token looks.
        hidden = decoder(input_ids=batch.input_ids, use_cache=False).last_hidden_state
        logits = self.model.get_output_embeddings()(hidden[batch.predicts]).float() / self.temperature
        logp = logits.log_softmax(-1)
        entropy = -(logp.exp() * logp).sum(-1)
        return logp.gather(-1, batch.targets[:, None]).squeeze(-1), entropy


class Trainer:
    """Updates a policy by GRPO. Every rank calls every method with the same arguments."""

    def __init__(self, directory: Path, settings: UpdateSettings, temperature: float) -> None:
        import deepspeed
        from transformers import AutoModelForCausalLM

        self.settings = settings
        self._companions = companions(directory)
        dtype = torch.bfloat16 if settings.precision == "bfloat16" else torch.float32
        model = AutoModelForCausalLM.from_pretrained(directory, dtype=dtype)
        if torch.cuda.is_available():
            model.gradient_checkpointing_enable()
        module = TokenLogprobs(model, temperature).train()
        self.engine: Any = deepspeed.initialize(
            model=module, model_parameters=module.parameters(), config=deepspeed_config(settings)
        )[0]
        self.device = torch.device(self.engine.device)
        self.clip = Clip(settings.clip_low, settings.clip_high, settings.correction_cap)

    @property
    def model(self) -> PreTrainedModel:
        """The Hugging Face model inside the engine."""
        model: PreTrainedModel = self.engine.module.model
        return model

    def update(self, groups: Sequence[Group], rate: float) -> dict[str, float]:
        """One GRPO update from the rollouts of a step; what was measured on the way, over all ranks.

        `rate` is the learning rate.
        A step without any informative group leaves the policy, and the optimiser's state, as they are.
        """
        for parameters in self.engine.optimizer.param_groups:
            parameters["lr"] = rate
        chosen, tokens = samples(groups, self.settings.normalize)
        parts = split(chosen, min(self.settings.minibatches, len(chosen)))
        prepared = [self._prepare(part) for part in parts]  # all of them before the policy changes
        sums = torch.zeros(len(_SUMS), dtype=torch.float64)
        norms: list[float] = []
        for _ in range(self.settings.epochs):
            for part, batches in zip(parts, prepared, strict=True):
                sums += self._accumulate(batches, tokens * len(part) / len(chosen))
                norms.append(self._step())
        return self._metrics(sums, norms, len(chosen), tokens)

    def save(self, directory: Path, version: int) -> None:
        """Write a Hugging Face directory with the optimiser's state below it, whole or not at all."""
        with publishing(directory) as temporary:
            save_policy(self.model, temporary, version, self._companions)
            self.engine.save_checkpoint(str(temporary), tag=OPTIMIZER, save_latest=False)

    def load(self, directory: Path) -> None:
        """Continue from `save`: weights and optimiser state."""
        if not (directory / OPTIMIZER).is_dir():
            raise FileNotFoundError(f"{directory / OPTIMIZER}: no such folder with the optimiser's state")
        self.engine.load_checkpoint(str(directory), tag=OPTIMIZER)

    def _prepare(self, minibatch: list[Sample]) -> list[tuple[MicroBatch, Tensor | None]]:
        """This rank's micro-batches, with old log-probabilities if several optimiser steps need them.

        Every rank gets equally many, if need be empty ones, since each backward pass is collective.
        """
        shares = [micro_batches(part, self.settings.micro_tokens) for part in split(minibatch, world_size())]
        mine = shares[rank()]
        mine += [[]] * (max(len(share) for share in shares) - len(mine))
        batches = [collate(part, self.device) for part in mine]
        if self.settings.epochs * self.settings.minibatches == 1:
            return [(batch, None) for batch in batches]
        with torch.no_grad():
            return [(batch, self.engine(batch)[0]) for batch in batches]

    def _accumulate(self, prepared: list[tuple[MicroBatch, Tensor | None]], tokens: float) -> Tensor:
        """Add up the gradient of the mean loss over `tokens`; the sums named by `_SUMS` of this rank."""
        sums = torch.zeros(len(_SUMS), dtype=torch.float64)
        for position, (batch, before) in enumerate(prepared):
            self.engine.set_gradient_accumulation_boundary(position == len(prepared) - 1)
            new, entropy = self.engine(batch)
            old = new.detach() if before is None else before
            losses = token_loss(new, old, batch.engine, batch.advantages, self.clip)
            sums += _summarise(new.detach(), old, batch, losses.detach(), entropy.detach(), self.clip)
            # DeepSpeed averages over ranks; the loss is a sum over all of them.
            self.engine.backward(losses.sum() * (world_size() / tokens))
        return sums

    def _step(self) -> float:
        """Apply the gradient; its norm before clipping."""
        norm = None
        if self.settings.zero_stage == 0 and self.settings.precision == "float32":
            # Here DeepSpeed clips without telling the norm.
            norm = nn.utils.get_total_norm([p.grad for p in self.model.parameters() if p.grad is not None])
        self.engine.step()
        return float(self.engine.get_global_grad_norm() if norm is None else norm)

    def _metrics(self, sums: Tensor, norms: list[float], learnt_from: int, tokens: int) -> dict[str, float]:
        sums = sums.to(self.device)
        torch.distributed.all_reduce(sums)
        total = dict(zip(_SUMS, sums.tolist(), strict=True))
        metrics = {
            "update/loss": total["loss"] / (max(tokens, 1) * self.settings.epochs),
            "update/learnt_rollouts": float(learnt_from),
        }
        if norms:
            metrics |= {f"update/{name}": total[name] / total["tokens"] for name in _SUMS[2:]}
            metrics["update/gradient_norm"] = sum(norms) / len(norms)
        return metrics


_SUMS = ("tokens", "loss", "entropy", "clipped_share", "logprob_gap", "correction_capped_share")


def _summarise(
    new: Tensor, old: Tensor, batch: MicroBatch, losses: Tensor, entropy: Tensor, clip: Clip
) -> Tensor:
    """Sums over the tokens of a micro-batch, in the order of `_SUMS`."""
    ratio = (new - old).exp()
    clipped = ((ratio > 1 + clip.high) & (batch.advantages > 0)) | (
        (ratio < 1 - clip.low) & (batch.advantages < 0)
    )
    gap = old - batch.engine
    capped = gap.exp() > clip.correction_cap
    columns = torch.stack([torch.ones_like(new), losses, entropy, clipped, gap.abs(), capped])
    return columns[:, batch.advantages != 0].double().sum(1).cpu()


def deepspeed_config(settings: UpdateSettings) -> dict[str, Any]:
    """DeepSpeed's configuration for these settings."""
    if settings.optimizer == "adam":
        optimizer = {
            "type": "AdamW",
            "params": {
                "lr": settings.learning_rate,
                "betas": list(settings.betas),
                "weight_decay": 0.0,
                "torch_adam": True,  # the other one compiles a kernel for minutes at its first use
            },
        }
    else:
        optimizer = {"type": "SGD", "params": {"lr": settings.learning_rate}}
    return {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "gradient_clipping": settings.gradient_clip,
        "zero_optimization": {"stage": settings.zero_stage},
        "bf16": {"enabled": settings.precision == "bfloat16"},
        "optimizer": optimizer,
        "zero_allow_untested_optimizer": True,  # its word for SGD
        "steps_per_print": 10**9,
        "wall_clock_breakdown": False,
    }
