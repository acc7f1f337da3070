// Candidates that search for secrets: in their own process and its descriptors, and, without a
// sandbox, in the other processes of the backend.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
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

// Searches all memory of its process and all files behind its descriptors. Each text that it
// searches for is split in two halves here, so that it does not find its own source.
constexpr char kSpy[] = R"py(
import os, re, struct
TEXTS = [(b"ORA", b"CLE_ONLY_MARKER"), (b"SEED_HEAD", b"SEED_TAIL"), (b"INPUT_HEAD", b"INPUT_TAIL"),
         (b"WEIGHT_HEAD", b"WEIGHT_TAIL"), (b"KEY_HEAD", b"KEY_TAIL")]
FLOATS = {"expected": struct.pack("<f", 12345.678), "inputs": struct.pack("<f", 54321.125)}

def look(data, found):
    for head, tail in TEXTS:
        at = data.find(tail)
        while at >= 0:
            if data[max(0, at - len(head)):at] == head:
                found.add(tail.decode())
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
            library = "/" in line and "memfd" not in line and mode[1] != "w"
            if mode[0] != "r" or library or "[v" in line:
                continue
            try:
                memory.seek(start)
                for at in range(start, end, 1 << 24):
                    look(memory.read(min(1 << 24, end - at)), found)
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
    def forward(self, x):
        print("FOUND", sorted(everything()), flush=True)
        try:
            open("KEY_FILE").read()
            print("READ_THE_KEY", flush=True)
        except OSError as error:
            print("no key:", type(error).__name__, flush=True)
        return x
)py";

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
  const std::string run = absl::StrCat(seed), inputs = absl::StrCat(seeds.inputs[0]),
                    weights = absl::StrCat(seeds.weights);
  const std::string spy = absl::StrReplaceAll(kSpy, {{"SEED_HEAD", run.substr(0, 4)},
                                                     {"SEED_TAIL", run.substr(4)},
                                                     {"INPUT_HEAD", inputs.substr(0, 4)},
                                                     {"INPUT_TAIL", inputs.substr(4)},
                                                     {"WEIGHT_HEAD", weights.substr(0, 4)},
                                                     {"WEIGHT_TAIL", weights.substr(4)},
                                                     {"KEY_HEAD", key.substr(0, 4)},
                                                     {"KEY_TAIL", key.substr(4)},
                                                     {"KEY_FILE", file}});
  auto backend = StartInterpreterBackend(WorkerPoolOptions());
  ASSERT_TRUE(backend.ok()) << backend.status();
  ExecRequest request = MakeExecRequest(spy, kMarkedReference, 60);
  request.set_seed(seed);
  const ExecResult result = RunOrFail(backend->get(), request);
  EXPECT_EQ(result.outcome().reason(), Outcome::MISMATCH) << result.DebugString();
  // The spy finds the data that it was given (its inputs and the seed of weights), so the search
  // itself works.
  EXPECT_NE(result.output().find("'inputs'"), std::string::npos) << result.output();
  EXPECT_NE(result.output().find(weights.substr(4)), std::string::npos) << result.output();
  EXPECT_EQ(result.output().find("'expected'"), std::string::npos) << result.output();
  EXPECT_EQ(result.output().find("CLE_ONLY"), std::string::npos) << result.output();
  EXPECT_EQ(result.output().find(run.substr(4)), std::string::npos) << result.output();
  EXPECT_EQ(result.output().find(inputs.substr(4)), std::string::npos) << result.output();
  EXPECT_EQ(result.output().find(key.substr(4)), std::string::npos) << result.output();
  EXPECT_NE(result.output().find("no key:"), std::string::npos) << result.output();
  EXPECT_EQ(result.output().find("READ_THE_KEY"), std::string::npos) << result.output();
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
print("LOOKED AT", len(others))
print("OTHERS", sorted(set().union(*map(look, others))), flush=True)
import torch, triton
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
)py";

TEST(SpyTest, WithoutASandboxReferenceProcessesCannotBeReadEither) {
  WorkerPoolOptions options;
  options.sandbox = SandboxKind::kNone;
  auto backend = StartInterpreterBackend(options);
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
  EXPECT_NE(result->output().find("CHILD ['LD_MARKER']"), std::string::npos) << result->output();
  EXPECT_NE(result->output().find("OTHERS []"), std::string::npos) << result->output();
  RemoveTree(folder).IgnoreError();
}

}  // namespace
}  // namespace tritonrl
