"""Lets `prefect deployment run train-envsched` find the deployment `train-envsched/train-envsched`.

Prefect wants `flow/deployment`. This start-up hook (the `prefect.plugins` entry point, turned on in
pyproject.toml) lets a name without a slash stand for a deployment called like its flow, in the command
line and in `run_deployment`. Names with a slash are passed on untouched.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from prefect.client import orchestration
from prefect.plugins import HookContext, register_hook

CLIENTS = ("PrefectClient", "SyncPrefectClient")
METHOD = "read_deployment_by_name"


# pluggy hands over arguments by name: without the star it refuses the plugin, in every prefect command.
@register_hook
def setup_environment(*, ctx: HookContext) -> None:
    """Called by Prefect when it starts; calling it again changes nothing."""
    for name in CLIENTS:
        client = getattr(orchestration, name, None)
        read = getattr(client, METHOD, None)
        if read is None:
            ctx.logger_factory(__name__).warning(
                "Prefect %s has no %s.%s: deployments need their full name, flow/deployment",
                ctx.prefect_version,
                name,
                METHOD,
            )
        elif not hasattr(read, "__wrapped__"):
            setattr(client, METHOD, _accept_bare_names(read))


def _accept_bare_names(read: Callable[..., Any]) -> Callable[..., Any]:
    """Works for the coroutine function too: what `read` returns is handed on as it is."""

    @functools.wraps(read)
    def read_deployment_by_name(self: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        return read(self, name if "/" in name else f"{name}/{name}", *args, **kwargs)

    return read_deployment_by_name
