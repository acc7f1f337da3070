"""The order of the top folders: each uses only those above it, and Bazel's visibility holds them to it."""

ORDER = [
    "base",  # files, processes, threads, keyed randomness, run folder
    "parallel",  # the ranks of a job: collectives over MPI and NCCL
    "tasks",  # the tasks to solve, prompts, responses
    "model",  # transformer with explicit backward, weights, tokenizer
    "exec",  # sandbox, workers, execution, timing
    "verify",  # verdicts and rewards
    "rollout",  # generation engine and server
    "trainer",  # SFT and GRPO
    "eval",  # benchmark runs and tables
    "bench",  # benches of all folders
    "tools",  # scripts around the build
    "slurm",  # job scripts
]

def visible_above(folder):
    """Packages that may use `folder`: its own and those of the folders later in ORDER."""
    return ["//%s:__subpackages__" % later for later in ORDER[ORDER.index(folder):]]
