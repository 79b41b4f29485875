"""Uniform selection over environments, then over the tasks of the environment."""

from envsched.environments.spec import key_environment
from envsched.scheduling.baselines.uniform import check_size, generator
from envsched.scheduling.scheduler import Batch, ScheduledTask, Scheduler


class UniformEnvironments(Scheduler):
    """Fills each place by an environment drawn uniformly and one of its tasks not yet in the batch.

    An environment that has no tasks left drops out, so the others fill the rest.
    A batch is a function of the seed, the step and the pool alone, so there is no state to carry.
    """

    def next_batch(self, size: int, step: int) -> Batch:
        """Exactly `size` distinct nodes; ScheduleError where the pool is smaller."""
        check_size(size, len(self.keys))
        rng = generator("uniform_environments", self.seed, step)
        left: dict[str, list[str]] = {}
        for key in self.keys:
            left.setdefault(key_environment(key), []).append(key)
        names = sorted(left)
        chosen = []
        for _ in range(size):
            name = names[rng.integers(len(names))]
            tasks = left[name]
            chosen.append(tasks.pop(rng.integers(len(tasks))))
            if not tasks:
                names.remove(name)
        return Batch(step, tuple(ScheduledTask(key, 0.0) for key in chosen))
