#include "exec/testing/soak/soak_plan.h"

#include <algorithm>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "exec/device_backend.h"
#include "exec/testing/run_request.h"

namespace tritonrl {
namespace {

struct Evil {
  const char* kind;
  const char* source;
  double wall_seconds;
  std::vector<Outcome::Reason> outcomes;
};

const std::vector<Evil>& Evils() {
  static const auto& evils = *new std::vector<Evil>{
      {"hang", "while True: pass", 0.4, {Outcome::TIMEOUT}},
      {"sleep",
       "import signal, time\n"
       "for s in range(1, 65):\n"
       "  try: signal.signal(s, signal.SIG_IGN)\n"
       "  except (OSError, ValueError): pass\n"
       "time.sleep(1000)",
       0.4,
       {Outcome::TIMEOUT}},
      {"stop", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", 0.4, {Outcome::TIMEOUT}},
      {"crash", "import ctypes\nctypes.string_at(8)", 10, {Outcome::CRASHED}},
      {"kill itself", "import os\nos.kill(os.getpid(), 9)", 10, {Outcome::CRASHED}},
      {"exit", "import os\nos._exit(0)", 10, {Outcome::EXITED}},
      // Copies of a process with torch may fill the memory first, and a busy host may be too slow
      // to reach the process limit in time.
      {"fork",
       "import os\n"
       "while True:\n"
       "  try: os.fork()\n"
       "  except OSError: pass",
       0.6,
       {Outcome::PROCESS_LIMIT, Outcome::OUT_OF_MEMORY, Outcome::TIMEOUT}},
      {"fill memory",
       "x = []\nwhile True: x.append(b'x' * (1 << 24))",
       20,
       {Outcome::OUT_OF_MEMORY}},
      {"fill memory files",
       "import os\n"
       "while True:\n"
       "  fd = os.memfd_create('m')\n"
       "  for _ in range(16): os.write(fd, bytes(1 << 20))",
       20,
       {Outcome::OUT_OF_MEMORY, Outcome::RUNTIME_ERROR, Outcome::IMPORT_ERROR}},
      {"daemons",
       "import os, time\n"
       "if os.fork() == 0:\n"
       "  os.setsid()\n"
       "  if os.fork() == 0: time.sleep(1000)\n"
       "  os._exit(0)\n"
       "for n in range(50): open(f'/dev/shm/{n}', 'w').write('x')\n"
       "os._exit(3)",
       10,
       {Outcome::EXITED}},
      {"garbage",
       "import os\n"
       "for fd in range(3, 64):\n"
       "  try: os.write(fd, b'{\"result\": {}}\\n')\n"
       "  except OSError: pass\n"
       "os._exit(0)",
       10,
       {Outcome::BAD_RESULT, Outcome::EXITED}},
      {"raise", "raise ValueError('no')", 10, {Outcome::RUNTIME_ERROR, Outcome::IMPORT_ERROR}},
  };
  return evils;
}

constexpr char kFarStore[] =
    "import torch, triton, triton.language as tl\n"
    "@triton.jit\n"
    "def far(x): tl.store(x + (1 << 50), 1.0)\n"
    "class ModelNew(torch.nn.Module):\n"
    "  def forward(self, x):\n"
    "    y = torch.zeros_like(x)\n"
    "    far[(1,)](y)\n"
    "    return y";
constexpr char kEndlessKernel[] =
    "import torch, triton, triton.language as tl\n"
    "@triton.jit\n"
    "def endless(x):\n"
    "  while tl.load(x, volatile=True) < 1e30: pass\n"
    "class ModelNew(torch.nn.Module):\n"
    "  def forward(self, x):\n"
    "    y = torch.zeros_like(x)\n"
    "    endless[(1,)](y)\n"
    "    torch.cuda.synchronize()\n"
    "    return y";

// Attacks on an executor, whose limits end them or which survives them.
const std::vector<Evil>& ExecutorEvils() {
  static const auto& evils = *new std::vector<Evil>{
      {"far store", kFarStore, 30, {Outcome::OUT_OF_BOUNDS}},
      {"endless kernel", kEndlessKernel, 3, {Outcome::TIMEOUT}},
      {"many commands",
       "import torch\n"
       "class ModelNew(torch.nn.Module):\n"
       "  def forward(self, x):\n"
       "    for i in range(1000000): y = torch.empty_like(x)\n"
       "    return y",
       30,
       {Outcome::RUNTIME_ERROR}},
      {"large tensors",
       "import torch\n"
       "class ModelNew(torch.nn.Module):\n"
       "  def forward(self, x):\n"
       "    return [torch.zeros(1 << 28, device='cuda') for _ in range(1000)]",
       30,
       {Outcome::OUT_OF_MEMORY, Outcome::RUNTIME_ERROR}},
      {"torch computes",
       "import torch\n"
       "class ModelNew(torch.nn.Module):\n"
       "  def forward(self, x): return torch.softmax(x, -1)",
       30,
       {Outcome::RUNTIME_COMPUTE}},
  };
  return evils;
}

}  // namespace

std::string SoakMark(int id) { return absl::StrCat("soak case ", id, "."); }

std::vector<SoakCase> PlanSoak(const SoakPlanOptions& options) {
  std::vector<Evil> evils;
  for (const Evil& evil : Evils()) {
    if (options.fill_memory || !absl::StartsWith(evil.kind, "fill")) evils.push_back(evil);
  }
  evils.insert(evils.end(), ExecutorEvils().begin(), ExecutorEvils().end());
  std::mt19937_64 random(options.seed);
  std::vector<SoakCase> plan(options.count);
  for (int id = 0; id < options.count; ++id) {
    SoakCase& soak = plan[id];
    soak.id = id;
    const std::string say = absl::StrCat("print('", SoakMark(id), "', flush=True)\n");
    const bool is_evil = std::uniform_real_distribution<>()(random) < options.evil_share;
    const Evil& evil = evils[random() % evils.size()];
    soak.kind = is_evil ? evil.kind : "honest";
    soak.source = say + (is_evil ? evil.source : kSoftmaxCandidate);
    soak.wall_seconds = (is_evil ? evil.wall_seconds : 30) + options.extra_seconds;
    soak.outcomes = is_evil ? evil.outcomes : std::vector<Outcome::Reason>{Outcome::OK};
  }
  return plan;
}

std::string CheckSoakResult(const SoakCase& soak, const ExecResult& result) {
  const std::string name = absl::StrCat("case ", soak.id, " (", soak.kind, ")");
  if (std::count(soak.outcomes.begin(), soak.outcomes.end(), result.outcome().reason()) == 0) {
    return absl::StrCat(name, ": ", ReasonName(result.outcome().reason()), ": ",
                        result.outcome().message());
  }
  if (!absl::StrContains(result.output(), SoakMark(soak.id))) {
    return absl::StrCat(name, ": a verdict without its mark, or another's: ", result.output());
  }
  return "";
}

}  // namespace tritonrl
