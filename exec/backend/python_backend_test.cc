// Tests retries and waits of a backend with reference processes, on a fake runner.
#include "exec/backend/python_backend.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "exec/backend/backend_factory.h"
#include "exec/testing/job_event.h"
#include "exec/testing/pool_options.h"

namespace tritonrl {
namespace {

class PythonBackendTest : public testing::Test {
 protected:
  void SetUp() override { Start(FakePoolOptions(3)); }

  void Start(const WorkerPoolOptions& options) {
    auto pools = StartPools(options, 1 << 20, /*shared_buffers=*/true);
    ASSERT_TRUE(pools.ok()) << pools.status();
    backend_ = std::make_unique<PythonBackend>("cuda", /*modelled=*/true, *std::move(pools));
  }

  static ExecRequest Request(const std::string& reference, const std::string& candidate) {
    ExecRequest request;
    request.set_reference_source(reference);
    request.set_candidate_source(candidate);
    request.set_trials(1);
    request.set_skip_timing(true);
    request.set_skip_ablation(true);
    request.set_skip_gpu_profile(true);
    return request;
  }

  ExecResult Run(const ExecRequest& request) {
    auto result = backend_->Run(request, absl::Now() + absl::Seconds(30));
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : ExecResult();
  }

  ExecResult Probe(const std::string& reference) {
    ExecRequest request = Request(reference, "");
    request.set_reference_only(true);
    request.set_probe_task(true);
    return Run(request);
  }

  std::unique_ptr<PythonBackend> backend_;
};

// Returns a reference with a tensor output, as only tensors are probed in the reference process;
// the fake runner's own outputs are numbers. `second` runs at the second probe.
std::string ProbedReference(const std::string& second) {
  return absl::StrCat(
      "import fake_runner\n"
      "fake_runner._EXPECTED = {'tensor': {'dtype': 'float32', 'shape': [4], 'stride': [1],"
      " 'device': 'cuda', 'layout': 'strided', 'offset': 0}}\n"
      "asked = []\n"
      "def order(message):\n"
      "  if 'probe' not in message: return None\n"
      "  asked.append(1)\n"
      "  if len(asked) == 2:\n    ",
      second, "\n  return {'difference': None}\n");
}

TEST_F(PythonBackendTest, ProbesThatLackMemoryAreTriedAgainAlone) {
  const ExecResult result =
      Probe(ProbedReference("return {'error': 'CUDA out of memory', 'out_of_memory': True}"));
  EXPECT_EQ(result.outcome().reason(), Outcome::OK) << result.ShortDebugString();
  EXPECT_EQ(result.probes_size(), 8);
  EXPECT_EQ(result.attempts(), 2);
}

TEST_F(PythonBackendTest, ProbesAreRetriedWhenTheReferenceProcessEnds) {
  // Each process dies at its second probe: the first one, and the new one of the retry.
  const ExecResult result = Probe(ProbedReference("import os; os._exit(1)"));
  EXPECT_EQ(result.outcome().reason(), Outcome::INTERNAL_ERROR) << result.ShortDebugString();
  EXPECT_EQ(result.attempts(), 2);
  EXPECT_EQ(result.probes_size(), 0);
}

TEST_F(PythonBackendTest, ACachedFailureNeedsNoGpuMemory) {
  WorkerPoolOptions options = FakePoolOptions(3);
  options.sandbox = SandboxKind::kNone;
  Start(options);
  JobEvent begun, go_on;
  // A candidate that fills the GPU according to its reference's sizes.
  const ExecRequest large = Request("sizes = {'in_bytes': 100 << 30, 'device_bytes': 80 << 30}",
                                    absl::StrCat(begun.PythonNotify(), "; ", go_on.PythonWait()));
  // A failed reference is cached without a reference process, so its result needs no GPU memory.
  const ExecRequest failed = Request(
      "result['outcome'] = 'reference_error'\nresult['message'] = 'no'\njob['host'] = False\n",
      "pass");
  EXPECT_EQ(Run(failed).outcome().reason(), Outcome::REFERENCE_FAILED);
  std::thread filling([&] { EXPECT_EQ(Run(large).outcome().reason(), Outcome::OK); });
  EXPECT_TRUE(begun.Wait());
  EXPECT_GE(backend_->memory().reserved, int64_t{60} << 30);
  const ExecResult told = Run(failed);  // `large` is killed at its limit if this waits for it
  go_on.Notify();
  EXPECT_EQ(told.outcome().reason(), Outcome::REFERENCE_FAILED);
  EXPECT_TRUE(told.reference_cached());
  filling.join();
  EXPECT_EQ(backend_->memory().reserved, 0);
}

TEST_F(PythonBackendTest, IdleReferenceProcessesGiveUpTheirWorkers) {
  // Three unused reference processes must make room for three new references at once. While the old
  // processes free their memory, new processes start; the old ones then are idle and still occupy
  // their workers.
  const auto numbered = [](int number) {
    return Request(absl::StrCat("sizes = {'device_bytes': 80 << 30}\n"
                                "drop_seconds = 0.5\n#",
                                number),
                   "pass");
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Run(numbered(i)).outcome().reason(), Outcome::OK);
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&, i] {
      ExecRequest request = numbered(10 + i);
      request.set_candidate_source("import time; time.sleep(0.2)");
      EXPECT_EQ(Run(request).outcome().reason(), Outcome::OK) << i;
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST_F(PythonBackendTest, QueuingForTheReferenceProcessIsNotCharged) {
  // Three candidates share one reference process, which compares two outputs of each for 0.8 s per
  // output: the last candidate needs 4.8 s, of which 1.6 s are its own.
  ExecRequest request =
      Request(ProbedReference("pass") +
                  "import time\n"
                  "def order(message):\n"
                  "  if 'compare' not in message: return None\n"
                  "  time.sleep(0.8)\n"
                  "  return {'difference': {'largest': '0', 'bad': 0}}\n",
              "import fake_runner\n"
              "fake_runner._EXPECTED = {'tensor': {'dtype': 'float32', 'shape': [4], 'stride': [1],"
              " 'device': 'cuda', 'layout': 'strided', 'offset': 0}}\n");
  request.mutable_limits()->set_wall_seconds(4);
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] {
      const ExecResult result = Run(request);
      EXPECT_EQ(result.outcome().reason(), Outcome::OK) << result.ShortDebugString();
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(MakeBackendTest, NamesOfBackends) {
  EXPECT_EQ(*ParseBackendKind("auto"), BackendKind::kAuto);
  EXPECT_EQ(*ParseBackendKind("cuda"), BackendKind::kCuda);
  EXPECT_EQ(*ParseBackendKind("native_cuda"), BackendKind::kNativeCuda);
  EXPECT_TRUE(absl::StrContains(ParseBackendKind("tpu").status().message(), "\"tpu\""));
  BackendOptions options;
  options.sandbox = "jail";
  EXPECT_EQ(MakeBackend(options).status().code(), absl::StatusCode::kInvalidArgument);
  if (!HasNvidiaGpu()) {
    options.sandbox = "bubblewrap";
    for (const BackendKind kind : {BackendKind::kCuda, BackendKind::kNativeCuda}) {
      options.kind = kind;
      EXPECT_EQ(MakeBackend(options).status().code(), absl::StatusCode::kFailedPrecondition);
    }
  }
}

}  // namespace
}  // namespace tritonrl
