// Candidates that search for secrets: in their own process and its descriptors, and, without a
// sandbox, in the other processes of the backend.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "exec/backend/backend_factory.h"
#include "exec/reference/job_json.h"
#include "exec/testing/run_request.h"

namespace tritonrl {
namespace {

// All outputs are 12345.678, all inputs 54321.125, so that the spy can recognise them.
constexpr char kMarkedReference[] = R"py(
import torch
REFERENCE_ONLY_MARKER = 12345.678
class Model(torch.nn.Module):
    def forward(self, x):
        return x * 0 + REFERENCE_ONLY_MARKER
def get_inputs():
    return [torch.full((64, 64), 54321.125)]
def get_init_inputs():
    return []
)py";

// Searches all memory of its process and all files behind its descriptors. What it searches for
// comes in two halves, so that it does not find its own source.
constexpr char kSpy[] = R"py(
import array, os, re, struct
SECRETS = [PAIRS]
FLOATS = {"numbers of outputs": struct.pack("<f", 12345.678), "numbers of inputs": struct.pack("<f", 54321.125),
          "own numbers": struct.pack("<f", 33333.5)}
OWN_NUMBERS = array.array("f", [33333.5] * 64)
ZEROS, OVERLAP = bytes(1 << 18), 256  # bytes; most of the memory is untouched

def look(data, found):
    for name, head, tail in SECRETS:
        at = data.find(tail)
        while at >= 0:
            if data[max(0, at - len(head)):at] == head:
                found.add(name)
            at = data.find(tail, at + 1)
    for name, four in FLOATS.items():
        at = data.find(four * 4)
        while at >= 0:
            if all(data[at + 4 * i:at + 4 * i + 4] == four for i in range(64)):
                found.add(name)
                break
            at = data.find(four * 4, at + 4)

def everything():
    found = set()
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps.read().splitlines():
            start, end, mode = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
            start, end = int(start, 16), int(end, 16)
            library = "/" in line and "memfd" not in line and mode[1] != "w" or "/nvidia/" in line
            if mode[0] != "r" or library or "[v" in line:
                continue
            try:
                for at in range(start, end, len(ZEROS)):
                    memory.seek(at)
                    data = memory.read(min(len(ZEROS) + OVERLAP, end - at))
                    if data[:len(ZEROS)] != ZEROS:
                        look(data, found)
            except (OSError, ValueError):
                pass
    for number in os.listdir("/proc/self/fd"):
        try:
            if "memfd" in os.readlink(f"/proc/self/fd/{number}"):
                look(os.pread(int(number), 1 << 24, 0), found)
        except OSError:
            pass
    for path in ("/proc/self/environ", "/proc/self/cmdline"):
        look(open(path, "rb").read(), found)
    return found

import torch, triton
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        print("FOUND", sorted(everything()), flush=True)
    def forward(self, x):
        print("FOUND", sorted(everything()), flush=True)
        try:
            open("KEY_FILE").read()
            print("READ_THE_KEY", flush=True)
        except OSError as error:
            print("no key:", type(error).__name__, flush=True)
        raise RuntimeError("it has seen enough")
)py";

// A Python tuple: the name, and the two halves of the secret as bytes.
std::string Halves(const std::string& name, const std::string& secret) {
  const auto bytes = [](const std::string& half) {
    std::string text = "b'";
    for (const char c : half) absl::StrAppendFormat(&text, "\\x%02x", static_cast<uint8_t>(c));
    return text + "'";
  };
  const size_t middle = secret.size() / 2;
  return absl::StrCat("('", name, "', ", bytes(secret.substr(0, middle)), ", ",
                      bytes(secret.substr(middle)), "), ");
}
// In digits, and as a number in memory.
std::string SeedHalves(const std::string& name, uint64_t seed) {
  std::string raw(sizeof(seed), '\0');
  memcpy(raw.data(), &seed, sizeof(seed));
  return Halves(name, absl::StrCat(seed)) + Halves(name, raw);
}

TEST(SpyTest, NothingSecretIsWithinReach) {
  const uint64_t seed = 7316829450182736455u;
  // In the supervisor's environment, and in a file of its user.
  const std::string key = "5a3c96e1f0b7d2485a3c96e1f0b7d2485a3c96e1f0b7d2485a3c96e1f0b7d248";
  setenv("TRITONRL_SEED_KEY", key.c_str(), 1);
  auto folder = MakeTempDirectory("state");
  ASSERT_TRUE(folder.ok()) << folder.status();
  const std::string file = JoinPath(*folder, "seed_key");
  ASSERT_TRUE(ReadOrMakeKey(file).ok());
  const JobSeeds seeds = DeriveSeeds(*SecretKey::Parse(key), seed, 5);
  std::string secrets = Halves("reference", "REFERENCE_ONLY_MARKER") + Halves("key", key) +
                        SeedHalves("run", seed) + SeedHalves("weights", seeds.weights) +
                        SeedHalves("decoy", seeds.decoy);
  for (const int trial : {0, 1}) {
    secrets += SeedHalves("seed of inputs", seeds.inputs[trial]);
  }
  const std::string spy = absl::StrReplaceAll(kSpy, {{"PAIRS", secrets}, {"KEY_FILE", file}});
  auto backend = StartNativeBackend(WorkerPoolOptions());
  ASSERT_TRUE(backend.ok()) << backend.status();
  ExecRequest request = MakeExecRequest(spy, kMarkedReference, 60);
  request.set_seed(seed);
  const ExecResult result = RunOrFail(backend->get(), request);
  EXPECT_EQ(result.outcome().status(), Outcome::STATUS_CANDIDATE_FAILED) << result.DebugString();
  // It finds what it has: its own numbers, and the seed that it was told, until a call replaces
  // it. So the search works.
  std::vector<std::string> told = absl::StrSplit(result.output(), '\n', absl::SkipEmpty());
  ASSERT_EQ(told.size(), 3u) << result.DebugString();
  EXPECT_EQ(told[0], "FOUND ['decoy', 'own numbers']");
  EXPECT_TRUE(told[1] == told[0] || told[1] == "FOUND ['own numbers']") << told[1];
  EXPECT_EQ(told[2].rfind("no key: ", 0), 0u) << told[2];
  EXPECT_TRUE(RemoveTree(*folder).ok());
}

// Keeps the marker in memory until the file FOLDER/done says that the spy has searched.
constexpr char kSlowReference[] = R"py(
import os, time, torch
REFERENCE_ONLY_MARKER = 12345.678
class Model(torch.nn.Module):
    def forward(self, x):
        open("FOLDER/there", "w").close()
        for _ in range(400):
            if os.path.exists("FOLDER/done"):
                break
            time.sleep(0.05)
        return x * 0 + REFERENCE_ONLY_MARKER
def get_inputs():
    return [torch.ones(4)]
def get_init_inputs():
    return []
)py";

// Searches the memory of every process of the backend that it may read. Its own child is a control:
// there it must find the marker.
constexpr char kNeighbourSpy[] = R"py(
import os, re, signal, time
def look(pid):
    found = set()
    try:
        for number in os.listdir(f"/proc/{pid}/fd"):
            if "hidden" in os.readlink(f"/proc/{pid}/fd/{number}"):
                found.add("descriptor of hidden memory")
    except OSError:
        pass
    try:
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for line in maps.read().splitlines():
                start, end, mode = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
                if mode[:2] != "rw" or "[v" in line:
                    continue
                memory.seek(int(start, 16))
                try:
                    data = memory.read(min(int(end, 16) - int(start, 16), 1 << 28))
                except OSError:
                    continue
                for head, tail in ((b"ORA", b"CLE_ONLY_MARKER"), (b"CHI", b"LD_MARKER")):
                    if head + tail in data:
                        found.add(tail.decode())
    except OSError:
        pass
    return found

child = os.fork()
if child == 0:
    mark = "".join(["CHI", "LD_", "MARKER"]) * 100
    time.sleep(30)
    os._exit(len(mark))
time.sleep(0.2)
print("CHILD", sorted(look(child)), flush=True)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
def parent(pid):
    try:
        with open(f"/proc/{pid}/stat", errors="replace") as file:
            return int(file.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0

def ours(pid):  # not what other tests run at the same time
    while pid > 1 and pid != SUPERVISOR:
        pid = parent(pid)
    return pid == SUPERVISOR

others = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid() and ours(int(name))]
commands = [open(f"/proc/{pid}/cmdline", errors="replace").read() for pid in others]
print("LOOKED AT AN EXECUTOR", any("exec/executor" in command for command in commands))
print("OTHERS", sorted(set().union(*map(look, others))), flush=True)
import torch, triton
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
)py";

TEST(SpyTest, WithoutASandboxReferenceProcessesCannotBeReadEither) {
  WorkerPoolOptions options;
  options.sandbox = SandboxKind::kNone;
  auto backend = StartNativeBackend(options);
  ASSERT_TRUE(backend.ok()) << backend.status();
  char folder[] = "/tmp/tritonrl-spy-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  ASSERT_EQ(chmod(folder, 0777), 0);
  const absl::Time deadline = absl::Now() + absl::Seconds(120);
  ExecRequest spy =
      MakeExecRequest(absl::StrReplaceAll(kNeighbourSpy, {{"SUPERVISOR", absl::StrCat(getpid())}}));
  // Caches the spy's own reference first, as the slow one then occupies the reference worker.
  spy.set_reference_only(true);
  ASSERT_EQ((*backend)->Run(spy, deadline)->outcome().reason(), Outcome::OK);
  spy.set_reference_only(false);

  ExecRequest slow = MakeExecRequest("", absl::StrReplaceAll(kSlowReference, {{"FOLDER", folder}}));
  slow.set_reference_only(true);
  std::thread holds([&] {
    const auto result = (*backend)->Run(slow, deadline);
    EXPECT_TRUE(result.ok() && result->outcome().reason() == Outcome::OK) << result.status();
  });
  while (!FileExists(absl::StrCat(folder, "/there")) && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(20));
  }
  const auto result = (*backend)->Run(spy, deadline);
  EXPECT_TRUE(WriteFileAtomic(absl::StrCat(folder, "/done"), "").ok());
  holds.join();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NE(result->output().find("LOOKED AT AN EXECUTOR True"), std::string::npos)
      << result->output();
  EXPECT_NE(result->output().find("CHILD ['LD_MARKER']"), std::string::npos) << result->output();
  EXPECT_NE(result->output().find("OTHERS []"), std::string::npos) << result->output();
  RemoveTree(folder).IgnoreError();
}

}  // namespace
}  // namespace tritonrl
