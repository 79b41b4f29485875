"""Generation with vLLM, in this process."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envsched.rollouts.engine import Completion, EngineError, Sampling, check_version

if TYPE_CHECKING:
    from vllm import SamplingParams

    from envsched.config import RolloutSettings


def _prepare(settings: RolloutSettings) -> None:
    """Environment variables that vLLM reads when it is imported."""
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", str(settings.cpu_cache_gb))
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    logging.getLogger("vllm").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", category=FutureWarning, module="vllm")
    import torch

    if not torch.cuda.is_available():
        # Compiling costs half a minute at the start and again at new shapes; at these sizes it gains nothing.
        os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")


def _bear_the_scan_of_modules() -> None:
    """Let vLLM start in a process that has loaded numba, as torch-geometric does.

    On the CPU vLLM reads `vars()` of whatever the loaded modules hold. llvmlite's handle of its library takes
    any attribute for one of its functions, `__dict__` too; vLLM fails on that answer.
    """
    llvmlite = sys.modules.get("llvmlite.binding.ffi")
    if llvmlite is not None:
        llvmlite.lib._fntab["__dict__"] = {}


def _options(settings: RolloutSettings, cuda: bool) -> dict[str, Any]:
    """Arguments of vLLM's `LLM`."""
    options: dict[str, Any] = {
        "dtype": settings.precision,
        "max_model_len": settings.context_tokens,
        "max_num_seqs": settings.concurrency,
        # A prompt must be read whole: on the CPU vLLM cannot seed requests whose prompt it splits.
        "enable_chunked_prefill": cuda,
        "max_num_batched_tokens": max(8192, settings.context_tokens),
        "gpu_memory_utilization": settings.gpu_memory,
        "enforce_eager": not cuda,
        "logprobs_mode": "processed_logprobs",
        "skip_tokenizer_init": True,
        "disable_log_stats": True,
        "use_tqdm_on_load": False,
        "async_scheduling": False,
        "seed": 0,
    }
    return options if cuda else options | {"block_size": 32}


def sampling_params(sampling: Sampling, seed: int) -> SamplingParams:
    """How one request is drawn, in vLLM's terms."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    return SamplingParams(
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        max_tokens=sampling.max_tokens,
        stop_token_ids=list(sampling.stop),
        seed=seed,
        logprobs=0,
        detokenize=False,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )


class VllmEngine:
    """vLLM's engine, driven request by request."""

    def __init__(self, settings: RolloutSettings, directory: Path, version: int) -> None:
        _prepare(settings)
        _bear_the_scan_of_modules()
        import torch
        from vllm import LLM

        try:
            self.llm = LLM(str(directory), **_options(settings, cuda=torch.cuda.is_available()))
        except (RuntimeError, ValueError, OSError) as error:
            raise EngineError(f"vLLM could not start with {directory}: {error}") from error
        self._engine: Any = self.llm.llm_engine
        self.version = version

    def submit(self, request: int, prompt: list[int], sampling: Sampling, seed: int) -> None:
        """Queue a prompt."""
        self._engine.add_request(str(request), {"prompt_token_ids": prompt}, sampling_params(sampling, seed))

    def step(self) -> list[tuple[int, Completion]]:
        """One forward pass over all running requests."""
        return [
            (int(output.request_id), _completion(output.outputs[0]))
            for output in self._engine.step()
            if output.finished
        ]

    def load_weights(self, directory: Path, version: int) -> None:
        """Replace the weights and forget what was computed with the old ones."""
        check_version(directory, version)
        if not any(directory.glob("*.safetensors")):
            raise EngineError(f"{directory}: the weights cannot be loaded: no .safetensors file")
        try:
            self.llm.collective_rpc("reload_weights", kwargs={"weights_path": str(directory)})
        except (RuntimeError, ValueError, OSError) as error:
            raise EngineError(f"{directory}: the weights cannot be loaded: {error}") from error
        self.llm.collective_rpc(_refresh_head)
        self.llm.reset_prefix_cache()
        self.version = version

    def close(self) -> None:
        """Shut the engine down."""
        self._engine.engine_core.shutdown()


def _refresh_head(worker: Any) -> None:
    """Derive the output layer from its weights again.

    On the CPU vLLM multiplies with a packed copy of them, and its reloading forgets that copy where the
    weights are tied to the embeddings.
    """
    head = worker.model_runner.get_model().lm_head
    head.quant_method.process_weights_after_loading(head)


def _completion(output: Any) -> Completion:
    token_ids = list(output.token_ids)
    logprobs = [step[token].logprob for step, token in zip(output.logprobs, token_ids, strict=True)]
    return Completion(token_ids, logprobs, finished=output.finish_reason == "stop")
