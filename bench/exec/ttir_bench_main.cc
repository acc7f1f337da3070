// Time of launches of Triton IR on the CPU: kernels of the corpus at sizes of real tasks. The peer,
// Triton's interpreter, runs the same kernels at the same sizes in the same run. The results of
// both are compared with torch's.
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/softmax.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "bench/exec/corpus_kernel.h"
#include "bench/harness/harness.h"

ABSL_FLAG(int, threads, 2, "Threads of a launch.");

namespace tritonrl {
namespace {

constexpr int kMostPeerRounds = 2;  // each takes half a minute
constexpr int64_t kElements = 1 << 20;
constexpr int64_t kRows = 4096;
constexpr int64_t kColumns = 1024;
constexpr int64_t kSize = 1024;

// A kernel of the corpus with its grid, its tensors (the last is the output) and the integers
// behind them, and what must come out.
struct Case {
  std::string kernel;
  std::string setting;
  int programs = 1;
  std::vector<at::Tensor> tensors;
  std::vector<int64_t> integers;
  at::Tensor expected;
  double aim_ms = 0;
  double amount = 0;  // of `unit` a second, in one launch
  std::string metric, unit;
};

at::Tensor Uniform(at::IntArrayRef shape) { return at::rand(shape).mul(2).sub(1); }

std::vector<Case> MakeCases() {
  std::vector<Case> cases;
  const at::Tensor x = Uniform({kElements}), y = Uniform({kElements});
  cases.push_back({.kernel = "vector_add",
                   .setting = "vector add of 2^20 fp32, blocks of 1024",
                   .programs = kElements / 1024,
                   .tensors = {x, y, at::empty_like(x)},
                   .integers = {kElements},
                   .expected = at::add(x, y),
                   .aim_ms = 3,
                   .amount = 3 * 4e-9 * kElements,
                   .metric = "memory traffic",
                   .unit = "GB/s"});
  const at::Tensor rows = Uniform({kRows, kColumns});
  cases.push_back({.kernel = "softmax",
                   .setting = "softmax of 4096 x 1024 fp32",
                   .programs = kRows,
                   .tensors = {rows, at::empty_like(rows)},
                   .integers = {kColumns},
                   .expected = at::softmax(rows, 1),
                   .aim_ms = 20,
                   .amount = 2 * 4e-9 * kRows * kColumns,
                   .metric = "memory traffic",
                   .unit = "GB/s"});
  const at::Tensor a = Uniform({kSize, kSize}).to(at::kHalf);
  const at::Tensor b = Uniform({kSize, kSize}).to(at::kHalf);
  cases.push_back({.kernel = "grouped_matmul",
                   .setting = "matmul of 1024^3 fp16, tiles 64 x 64 x 32",
                   .programs = (kSize / 64) * (kSize / 64),
                   .tensors = {a, b, at::empty({kSize, kSize})},
                   .integers = {kSize, kSize, kSize},
                   .expected = at::matmul(a.to(at::kFloat), b.to(at::kFloat)),
                   .aim_ms = 300,
                   .amount = 2e-9 * kSize * kSize * kSize,
                   .metric = "rate",
                   .unit = "GFLOP/s"});
  return cases;
}

// Seconds of a launch. An error if the output is not what torch computes.
absl::StatusOr<double> Launch(const Case& c, const CorpusKernel& kernel) {
  std::vector<absl::Span<uint8_t>> memory;
  for (const at::Tensor& tensor : c.tensors) {
    memory.emplace_back(static_cast<uint8_t*>(tensor.data_ptr()), tensor.nbytes());
  }
  const at::Tensor& output = c.tensors.back();
  output.fill_(-7);
  absl::Status status;
  const double seconds = SecondsOf([&] {
    status = kernel.Launch(c.programs, memory, c.integers, absl::GetFlag(FLAGS_threads));
  });
  RETURN_IF_ERROR(status);
  if (!at::allclose(output, c.expected, 1e-4, 1e-4)) {
    return absl::InternalError(absl::StrCat(c.kernel, ": the result is not torch's"));
  }
  return seconds;
}

// The peer's milliseconds by kernel.
absl::StatusOr<nlohmann::json> MeasurePeer(const Bench& bench) {
  ASSIGN_OR_RETURN(const std::string kernels, Runfile("exec/ttir/testing"));
  ASSIGN_OR_RETURN(const auto lines,
                   RunPeer({.script = "bench/exec/interpreter_peer.py",
                            .arguments = {absl::StrCat(std::min(bench.repeats(), kMostPeerRounds))},
                            .python_path = {kernels},
                            .env = {{"TRITON_INTERPRET", "1"}},
                            .timeout = absl::Minutes(10)}));
  nlohmann::json times;
  for (const nlohmann::json& line : lines) {
    if (!line.value("right", false)) {
      return absl::InternalError(absl::StrCat("the peer's result is not torch's: ", line.dump()));
    }
    times[line.value("kernel", "")] = line.at("ms");
  }
  return times;
}

absl::Status Run(Bench* bench) {
  at::set_num_threads(1);  // its threads would wait actively beside a launch
  const std::vector<Case> all = MakeCases();
  std::vector<BenchCase> cases;
  for (const Case& c : all) {
    ASSIGN_OR_RETURN(CorpusKernel compiled, CorpusKernel::Compile(c.kernel));
    cases.push_back([&c, kernel = std::make_shared<CorpusKernel>(std::move(compiled))](bool) {
      return Launch(c, *kernel);
    });
  }
  ASSIGN_OR_RETURN(const auto seconds, bench->Measure(cases));
  nlohmann::json peer;
  if (!bench->peer().empty()) {
    ASSIGN_OR_RETURN(peer, MeasurePeer(*bench));
    bench->set_peer_name("Triton's interpreter");
  }
  bench->set_subject("Triton IR on the CPU");
  for (size_t i = 0; i < all.size(); ++i) {
    const Case& c = all[i];
    const std::optional<double> peer_ms = PeerValue(peer, c.kernel.c_str());
    std::vector<double> milliseconds;
    for (const double time : seconds[i]) milliseconds.push_back(time * 1e3);
    const double fastest = Fastest(milliseconds);
    std::vector<Figure> figures = {{"time", fastest, "ms", peer_ms, c.aim_ms, milliseconds},
                                   {c.metric, c.amount / Fastest(seconds[i]), c.unit, std::nullopt,
                                    std::nullopt, Rates(c.amount, seconds[i])}};
    if (peer_ms.has_value()) figures.push_back({"peer's time over ours", *peer_ms / fastest, "x"});
    bench->Add(absl::StrCat(c.setting, ", ", absl::GetFlag(FLAGS_threads), " threads"), figures);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::RunBench(
      {.usage = "Time of launches of Triton IR on the CPU, beside Triton's interpreter.",
       .warmup = 1,
       .repeats = 5,
       .peer = "true"},
      argc, argv, tritonrl::Run);
}
