"""Generation with a plain transformers model: one forward pass a step over all running conversations.

A conversation that comes back continues from the keys and values its slot still holds, and prompts that
begin alike are read once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from transformers import AttentionInterface, AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

from envsched.rollouts.draw import draw, uniforms
from envsched.rollouts.engine import Completion, EngineError, Sampling, check_version
from envsched.rollouts.slot_cache import SlotCache, lay_out, slot_attention

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from envsched.config import RolloutSettings

READ_TOKENS = 4096
"""Most prompt tokens in one forward pass, unless a single prompt is longer: bounds memory."""
WORTH_WAITING = 16
"""A prompt waits a step for another's keys and values if they save it this many tokens."""

WORTH_SHARING = 1_000_000_000
"""A pass of fewer multiplications (tokens times parameters) takes longer with several threads than with one:
waking them costs more than they save."""

ATTENTION = "envsched_slots"
AttentionInterface.register(ATTENTION, slot_attention)


@dataclass
class _Request:
    """One completion on its way."""

    number: int
    prompt: NDArray[np.int64]
    sampling: Sampling
    seed: int
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)

    def take(self, token: int, logprob: float) -> Completion | None:
        """Add a token; the completion if that was the last."""
        self.token_ids.append(token)
        self.logprobs.append(logprob)
        stopped = token in self.sampling.stop
        if stopped or len(self.token_ids) >= self.sampling.max_tokens:
            return Completion(self.token_ids, self.logprobs, finished=stopped)
        return None


class TransformersEngine:
    """Anything `AutoModelForCausalLM` loads that attends to all earlier tokens, on CUDA or the CPU."""

    def __init__(self, settings: RolloutSettings, directory: Path, version: int) -> None:
        check_version(directory, version)
        self._model = _load_model(directory, settings.precision)
        self._parameters = self._model.num_parameters()
        self._cache = _new_cache(self._model, settings.concurrency, settings.context_tokens)
        self._context = settings.context_tokens
        self._queue: deque[_Request] = deque()
        self._running: dict[int, _Request] = {}
        """Requests by slot."""
        self._used = np.zeros(settings.concurrency, np.int64)
        """The step in which each slot was last used."""
        self._steps = 0
        self.tokens_read = 0
        """How many tokens went through the model so far."""
        self.version = version

    def submit(self, request: int, prompt: list[int], sampling: Sampling, seed: int) -> None:
        """Queue a prompt; ValueError if it is empty or leaves no room in the context."""
        if not 0 < len(prompt) < self._context:
            raise ValueError(f"request {request}: {len(prompt)} tokens; expected 1 to {self._context - 1}")
        room = min(sampling.max_tokens, self._context - len(prompt))
        sampling = Sampling(sampling.temperature, sampling.top_p, room, sampling.stop)
        self._queue.append(_Request(request, np.array(prompt), sampling, seed))

    def step(self) -> list[tuple[int, Completion]]:
        """One forward pass over all running requests."""
        self._steps += 1
        self._admit()
        if not self._running:
            return []
        self._compact()
        running = [self._running[slot] for slot in range(len(self._running))]
        tokens, logprobs = self._generate(running)
        self._cache.append(tokens)
        self._used[: len(running)] = self._steps
        done = []
        for slot, (request, token, logprob) in enumerate(
            zip(running, tokens.tolist(), logprobs.tolist(), strict=True)
        ):
            if completion := request.take(token, logprob):
                done.append((request.number, completion))
                del self._running[slot]
        return done

    def load_weights(self, directory: Path, version: int) -> None:
        """Replace the weights and forget what was computed with the old ones."""
        check_version(directory, version)
        _copy_weights(directory, self._model)
        self._cache.drop()
        self.version = version

    def close(self) -> None:
        """Free the model and its cache."""
        del self._model, self._cache

    def _admit(self) -> None:
        """Give waiting requests the slots that are free, the longest unused first."""
        room = READ_TOKENS
        waiting: deque[_Request] = deque()
        idle = sorted(set(range(len(self._used))) - self._running.keys(), key=self._used.__getitem__)
        while self._queue and idle and room > 0:
            request = self._queue.popleft()
            shared = self._cache.shared(request.prompt)
            held = np.minimum(np.minimum(shared, self._cache.cached), len(request.prompt) - 1)
            donor = int(held.argmax())
            coming = max((int(shared[slot]) for slot in self._running), default=0)
            if min(coming, len(request.prompt) - 1) - held[donor] >= WORTH_WAITING:
                waiting.append(request)
                continue
            # A conversation that comes back goes on in its own slot.
            slot = donor if donor in idle and shared[donor] >= self._cache.cached[donor] > 0 else idle[0]
            idle.remove(slot)
            self._cache.begin(slot, request.prompt, donor, int(held[donor]))
            self._running[slot] = request
            room -= len(request.prompt) - int(held[donor])
        self._queue.extendleft(reversed(waiting))

    def _compact(self) -> None:
        """Move the running requests to the first slots."""
        count = len(self._running)
        movers = sorted(slot for slot in self._running if slot >= count)
        holes = [slot for slot in range(count) if slot not in self._running]
        if movers:
            self._cache.swap(holes, movers)
            self._used[holes + movers] = self._used[movers + holes]
            for hole, mover in zip(holes, movers, strict=True):
                self._running[hole] = self._running.pop(mover)

    @torch.inference_mode()
    def _generate(self, running: list[_Request]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The next token of every running request and its log-probability."""
        layout = lay_out(self._cache, len(running))
        self.tokens_read += len(layout.ids)
        with _threads(len(layout.ids) * self._parameters):
            logits = self._model(
                input_ids=layout.ids[None],
                position_ids=layout.positions[None],
                use_cache=False,
                logits_to_keep=layout.last,
                layout=layout,
            ).logits[0]
        if logits.isnan().any():
            raise EngineError(f"policy version {self.version} gives logits that are not numbers")
        drawn = uniforms(
            np.array([request.seed for request in running], np.uint64),
            np.array([len(request.token_ids) for request in running], np.uint64),
        )
        options = [[r.sampling.temperature for r in running], [r.sampling.top_p for r in running], drawn]
        columns = torch.from_numpy(np.array(options, np.float64)).to(logits.device)
        tokens, logprobs = draw(logits, *columns)
        return tokens.cpu().numpy(), logprobs.cpu().numpy()


@contextmanager
def _threads(products: int) -> Iterator[None]:
    """One thread inside for a pass of few multiplications; else as many as before."""
    before = torch.get_num_threads()
    if products < WORTH_SHARING:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _load_model(directory: Path, precision: str) -> PreTrainedModel:
    """The model of a Hugging Face directory; EngineError unless it is complete and of a kind we can run."""
    disable_progress_bar()  # it would be drawn across the caller's own
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            directory,
            dtype=getattr(torch, precision),
            attn_implementation=ATTENTION,
            local_files_only=True,
            output_loading_info=True,
        )
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        raise EngineError(f"{directory}: no model can be loaded: {error}") from error
    model, loading = loaded
    if loading["missing_keys"]:
        raise EngineError(f"{directory}: weights are missing: {', '.join(sorted(loading['missing_keys']))}")
    kinds = set(getattr(model.config, "layer_types", None) or ["full_attention"])
    if kinds != {"full_attention"}:
        found = ", ".join(sorted(kinds))
        raise EngineError(f"{directory}: layers are {found}; engine transformers needs full_attention")
    model = model.eval().to("cuda" if torch.cuda.is_available() else "cpu")
    return cast("PreTrainedModel", model)


def _new_cache(model: PreTrainedModel, slots: int, length: int) -> SlotCache:
    config = model.config
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    return SlotCache(slots, length, config.num_hidden_layers, heads, size, next(model.parameters()))


def _copy_weights(directory: Path, model: PreTrainedModel) -> None:
    """Copy every tensor of the directory's files into the model; EngineError unless they fit."""
    own: dict[str, Tensor] = model.state_dict()
    try:
        found = {n: t for file in sorted(directory.glob("*.safetensors")) for n, t in load_file(file).items()}
    except (OSError, SafetensorError) as error:
        raise EngineError(f"{directory}: the weights cannot be read: {error}") from error
    tied = model.all_tied_weights_keys.keys() - found.keys()
    wrong = found.keys() ^ (own.keys() - tied)
    wrong |= {name for name in found.keys() & own.keys() if found[name].shape != own[name].shape}
    if wrong:
        names = ", ".join(sorted(wrong))
        raise EngineError(f"{directory}: weights are missing, unknown or of another shape: {names}")
    with torch.no_grad():
        for name, tensor in found.items():
            own[name].copy_(tensor)
