"""Text games of TextWorld: commands in words, a room's description in return.

`environments.path` is a folder with games as `tw-make` compiles them, `NAME.z8` with `NAME.json` beside it.
Every game is a task; those of a sub-folder are an environment, those that lie in the folder itself another.
The raw reward is the share of the game's points, or whether it was won when the reward is binary. Needs
pip install 'envsched[textworld]'.
"""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envsched.environments.episode import Action, Episode, Heard, Observation, ToolCall
from envsched.environments.records import Problem
from envsched.environments.sources.plays import raw_reward
from envsched.environments.sources.source import Loaded, hashed_split
from envsched.environments.spec import EnvironmentSpec, Node, Split, TaskSpec, ToolSpec
from envsched.files import sha256

if TYPE_CHECKING:
    from envsched.config import EnvironmentSettings

COMMAND = ToolSpec(
    "command",
    "Enter a command, such as: go north, take key, open box, look, inventory.",
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    kind="update",
)


EXPECTED = "a file with what the player is to do"
STATUS = re.compile(r"[>\s]*-= .* =-\d+/\d+")
MENU = "Would you like to RESTART"
"""What the interpreter asks when a game is over."""
COPIES = 192
"""Games that a worker can play at once."""


def prepare(path: str | None) -> None:
    """Load the interpreter as often as games may be played at once: it plays one at a time.

    It comes as a library of which Jericho makes a copy for every game, which a confined worker could not.
    """
    import jericho.jericho
    import textworld  # noqa: F401 - it reads more than a confined worker may

    loaded = [jericho.jericho._load_frotz_lib() for _ in range(COPIES)]
    libraries = {library._handle: library for library in loaded}
    free = list(libraries)

    def take() -> Any:
        if not free:
            raise RuntimeError(f"more than {COPIES} games at once in a worker; raise environments.workers")
        return libraries[free.pop()]

    jericho.jericho._load_frotz_lib = take
    jericho.jericho.dlclose_func = free.append  # called with the handle when a game is over


def load(settings: EnvironmentSettings) -> Loaded:
    """A task for every game; ValueError without a folder of games, ImportError without the package."""
    if find_spec("textworld.version") is None:
        raise ImportError("textworld: not installed; pip install 'envsched[textworld]'")
    folder = Path(settings.path or "")
    games = sorted(folder.glob("**/*.z8")) if settings.path else []
    if not games:
        raise ValueError(f"environments.path: found no *.z8 in {settings.path!r}; expected a folder of games")
    nodes: list[Node] = []
    problems: list[Problem] = []
    for game in games:
        try:
            objective = _objective(game.with_suffix(".json"))
        except (OSError, ValueError) as error:
            problems.append(
                Problem(str(game.with_suffix(".json")), game.stem, "objective", str(error), EXPECTED)
            )
            continue
        nodes.append(_node(folder, game, objective))
    return Loaded(tuple(nodes), problems=tuple(problems))


def open_episode(environment: EnvironmentSpec, task: TaskSpec, seed: int, reward: str) -> Episode:
    """Start one play. Games have no chance in them: all plays of a task begin alike."""
    return Game(task, Path(environment.program["checkout"]) / task.program["game"], reward == "binary")


class Game:
    """One play of one game."""

    def __init__(self, task: TaskSpec, path: Path, binary: bool) -> None:
        import textworld

        self.task = task
        self.binary = binary
        wanted = textworld.EnvInfos(score=True, max_score=True, won=True, lost=True)
        self.game: Any = textworld.start(str(path), wanted)
        self.state: Any = None

    def reset(self) -> Observation:
        """The objective and the first room."""
        self.state = self.game.reset()
        banner, objective, room = str(self.state.feedback).partition(self.task.instruction)
        return Observation(f"{self.task.instruction}\n\n{_shown(room if objective else banner)}", role="user")

    def act(self, action: Action) -> Observation:
        """One command, by the tool or in plain words."""
        text = action.arguments.get("text") if isinstance(action, ToolCall) else action.text
        unknown = isinstance(action, ToolCall) and (
            action.name != COMMAND.name or set(action.arguments) != {"text"}
        )
        if unknown or not isinstance(text, str) or isinstance(action, Heard):
            return Observation("error: call command with the command as text", kind="error")
        self.state, _, over = self.game.step(" ".join(text.split()))
        kind = COMMAND.kind if isinstance(action, ToolCall) else "communicate"
        reward = self.verify() if over else 0.0
        return Observation(_shown(str(self.state.feedback)), reward=reward, terminated=bool(over), kind=kind)

    def verify(self) -> float:
        """Points over all that there are, in [0, 1]; whether the game is won when the reward is binary."""
        if self.binary:
            return float(bool(self.state.won))
        return raw_reward(self.state.score / max(self.state.max_score, 1), binary=False)


def _node(folder: Path, game: Path, objective: str) -> Node:
    place = game.relative_to(folder)
    name = place.parent.as_posix().replace("/", ".") if len(place.parts) > 1 else folder.resolve().name
    environment = EnvironmentSpec(
        "textworld",
        name,
        "A text adventure, played by commands.",
        (COMMAND,),
        program={"checkout": str(folder.resolve())},
    )
    split: Split = "heldout" if hashed_split(place.as_posix()) else "train"
    program = {"game": place.as_posix(), "sha256": sha256(game)}
    return Node(environment, TaskSpec(name, game.stem, objective, split, program=program))


def _objective(path: Path) -> str:
    """What the player is to do; ValueError where the file does not say."""
    found = json.loads(path.read_text())
    objective = found.get("objective") if isinstance(found, dict) else None
    if not isinstance(objective, str) or not objective.strip():
        raise ValueError(repr(objective))
    return objective.strip()


def _shown(text: str) -> str:
    """What the game says, without the status line, the prompt sign and space for layout."""
    text = text.partition(MENU)[0]
    lines = [" ".join(line.split()) for line in text.split("\n") if not STATUS.match(line)]
    paragraphs = re.split(r"\n{2,}", "\n".join("" if line == ">" else line for line in lines))
    return "\n\n".join(paragraph.strip() for paragraph in paragraphs if paragraph.strip())
