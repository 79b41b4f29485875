# `make` lists the targets. Every target that needs the environment sets it up first, once.

SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# Without bytecode on disk every process compiles torch and transformers anew: 15 seconds each.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= $(or $(shell command -v python3.11),$(shell command -v python3))
BIN := .venv/bin
ARGS ?=
RESOLVE := $(BIN)/uv pip compile --quiet --no-header --annotation-style line --excludes requirements/excludes.txt \
	--python-version 3.11 --python-platform x86_64-manylinux_2_28

# Waiting OpenMP threads must sleep: spinning, they slow everything down tenfold where cores are short.
export OMP_WAIT_POLICY ?= PASSIVE

.PHONY: help setup train test lint up down params lock clean

help: ## list these targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | awk -F '\t' '{ printf "  make %-7s %s\n", $$1, $$2 }'

setup: ## create .venv from the pinned lock (a few seconds when it is there already)
	@$(if $(PYTHON),,$(error Python 3.11 is needed; found no python3.11 or python3 on PATH))$(PYTHON) -m scripts.setup

train: setup ## train an agent: make train ARGS="-S train.steps=5"
	@$(BIN)/envsched train $(ARGS)

test: setup ## run all tests: make test ARGS="-k scheduler"
	@$(BIN)/python -m pytest -n 2 --dist loadfile $(ARGS)

lint: setup ## ruff and mypy
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

up: setup ## start the Prefect and MLflow servers and a worker here, register the deployment
	@$(BIN)/python -m scripts.services up $(ARGS)

down: ## stop what `make up` started
	@$(PYTHON) -m scripts.services down

params: setup ## write params.yaml anew from the defaults in envsched/config.py
	@$(BIN)/python -m scripts.write_params

lock: setup ## resolve requirements/*.in into *.lock again, keeping versions where they still fit
	@$(RESOLVE) $(or $(addprefix --find-links ,$(PIP_FIND_LINKS)),--torch-backend cpu) -o requirements/cpu.lock requirements/cpu.in
	@$(RESOLVE) -o requirements/gpu.lock requirements/gpu.in

clean: down ## delete .venv, caches and build outputs; runs/ and mlflow.db stay
	@rm -rf .venv .setup.lock .services build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
