"""The order of folders: each uses only those above it, and Bazel's visibility holds them to it."""

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

# The same within a folder: each sub-folder uses only those above it. Sub-folders that are missing
# here, such as testing, and the targets of the folder itself may be used by all of the folder.
SUB_ORDER = {
    "eval": ["metrics", "sources", "tables", "run"],
    "exec": [
        "sandbox",
        "ttir",
        "compare",
        "device",
        "client",
        "workers",
        "outcome",
        "reference",
        "timing",
        "candidate",
        "executor",
        "client_run",
        "backend",
        "host_check",
        "triton_run",
        "service",
    ],
    "model": ["cpu", "cuda", "weights", "layers", "memory"],
    "rollout": ["scheduler", "speculative", "engine", "cuda", "factory", "distributed", "serve"],
    "trainer": [
        "config",
        "program",
        "objective",
        "optimizer",
        "learner",
        "checkpoint",
        "run",
        "sft",
        "report",
        "grpo",
    ],
    "verify": ["verdict", "judge", "linter", "pipeline", "preflight", "cli"],
}

# Sub-folders whose tests use a later sub-folder. Product code may not.
TEST_USERS = {
    "exec/backend": ["sandbox", "client_run"],
    "model/layers": ["weights"],
    "verify/pipeline": ["linter"],
}

def visible_above(folder):
    """Packages that may use the calling package, which belongs to the top folder `folder`.

    They are the later folders of ORDER, and in `folder` itself the package's own sub-folder, the
    later ones of SUB_ORDER, `testing`, and the sub-folders of TEST_USERS.
    """
    later = ["//%s:__subpackages__" % f for f in ORDER[ORDER.index(folder) + 1:]]
    order = SUB_ORDER.get(folder, [])
    parts = native.package_name().split("/")
    if len(parts) < 2 or parts[1] not in order:
        return ["//%s:__subpackages__" % folder] + later
    users = order[order.index(parts[1]):] + ["testing"]
    users += TEST_USERS.get("/".join(parts[:2]), [])
    return ["//%s:__pkg__" % folder] + ["//%s/%s:__subpackages__" % (folder, u) for u in users] + later
