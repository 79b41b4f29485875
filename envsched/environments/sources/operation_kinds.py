"""What a tool does to the state, guessed from its name and type where the record does not say."""

import re

from envsched.environments.spec import OperationKind


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


VERBS: dict[OperationKind, frozenset[str]] = {
    "search": _words("search find list filter query lookup browse grep ls discover match locate"),
    "create": _words(
        "add create register insert book place post upload log record submit open generate start new enroll "
        "schedule reserve ingest mkdir touch append buy join fund make issue comment retweet follow"
    ),
    "delete": _words(
        "delete remove cancel clear drop deregister unregister withdraw detach rm rmdir revoke purge erase "
        "dismiss unfollow unpin discard archive"
    ),
    "compute": _words(
        "calculate compute aggregate summarize summarise count estimate convert sum mean average sort diff "
        "compare rank evaluate total add subtract multiply divide power percentage round absolute logarithm "
        "standard max min wc measure"
    ),
    "communicate": _words("send notify message reply email contact share invite tell announce echo"),
}
READS: frozenset[str] = _words(
    "get read show view check is has can verify validate display describe fetch retrieve cat head tail pwd"
)


def operation_kind(name: str, changes_state: bool | None = None) -> OperationKind:
    """Kind of the tool `name`; `changes_state` is what the record says, None if it says nothing."""
    words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    verb = words[0] if words else ""
    if changes_state is False:
        return _first_match(verb, ("search", "compute")) or "read"
    if changes_state is True:
        return _first_match(verb, ("create", "delete", "communicate")) or "update"
    if verb in READS:
        return "read"
    return _first_match(verb, ("search", "create", "delete", "compute", "communicate")) or "update"


def _first_match(verb: str, kinds: tuple[OperationKind, ...]) -> OperationKind | None:
    return next((kind for kind in kinds if verb in VERBS[kind]), None)
