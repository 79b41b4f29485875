import logging

import anyio
import pytest
from prefect.client import orchestration
from prefect.plugins import HookContext, run_startup_hooks
from prefect.settings import PREFECT_PLUGINS_ENABLED, temporary_settings

from envsched.plugins import prefect as plugin

CONTEXT = HookContext(prefect_version="3", api_url=None, logger_factory=logging.getLogger)


def test_prefect_finds_and_accepts_the_hook():
    with temporary_settings({PREFECT_PLUGINS_ENABLED: True}):
        summaries = anyio.run(run_startup_hooks, CONTEXT)
    assert [(s.plugin, s.error) for s in summaries if s.plugin == "envsched"] == [("envsched", None)]
    for name in plugin.CLIENTS:
        assert hasattr(getattr(getattr(orchestration, name), plugin.METHOD), "__wrapped__")


@pytest.mark.parametrize(
    ("typed", "asked"),
    [("train-envsched", "train-envsched/train-envsched"), ("flow/other", "flow/other"), ("a/b/c", "a/b/c")],
)
def test_only_a_bare_name_is_completed(typed, asked):
    def read_deployment_by_name(self: None, name: str) -> str:
        return name

    assert plugin._accept_bare_names(read_deployment_by_name)(None, typed) == asked


def test_a_coroutine_function_is_completed_too():
    async def read_deployment_by_name(self: None, name: str) -> str:
        return name

    assert anyio.run(plugin._accept_bare_names(read_deployment_by_name), None, "x") == "x/x"


def test_calling_the_hook_again_changes_nothing():
    plugin.setup_environment(ctx=CONTEXT)
    before = orchestration.PrefectClient.read_deployment_by_name
    plugin.setup_environment(ctx=CONTEXT)
    assert orchestration.PrefectClient.read_deployment_by_name is before


def test_a_moved_attribute_is_noted_and_breaks_nothing(monkeypatch, caplog):
    monkeypatch.delattr(orchestration, "SyncPrefectClient")
    plugin.setup_environment(ctx=CONTEXT)
    assert "has no SyncPrefectClient.read_deployment_by_name" in caplog.text
