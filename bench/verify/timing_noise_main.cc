// Measures the speedup of one pair of programs repeatedly on a GPU and reports the spread.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "bench/harness/harness.h"
#include "exec/backend/backend_factory.h"
#include "exec/device_backend.h"
#include "exec/timing/speedup.h"
#include "verify/preflight/self_check.h"

ABSL_FLAG(std::string, reference, "", "Python file with Model, get_inputs and get_init_inputs.");
ABSL_FLAG(std::string, candidate, "",
          "Python file with ModelNew; empty: the reference itself, whose speedup is 1.");
ABSL_FLAG(std::string, sandbox, "bubblewrap", "bubblewrap, or none.");
ABSL_FLAG(int, workers, 1, "Measurements at the same time (each still has the GPU to itself).");

namespace tritonrl {
namespace {

struct Repeats {
  std::vector<double> speedups, paper, widths;
  int without_time = 0;
};

// Prints a measurement and keeps its figures.
void Note(int repeat, const ExecResult& result, Repeats* repeats) {
  if (!result.has_speedup() || !result.has_timing()) {
    ++repeats->without_time;
    std::printf("%2d  %s: %s\n", repeat, ReasonName(result.outcome().reason()).c_str(),
                result.outcome().message().c_str());
    return;
  }
  const MeasuredTiming& timing = result.timing();
  std::printf(
      "%2d  %.4fx [%.4f, %.4f] of %d blocks, reference %.2f us, candidate %.2f us, "
      "with launches %.3fx, %.0f to %.0f MHz%s%s\n",
      repeat, result.speedup(), timing.speedup_low(), timing.speedup_high(),
      timing.block_ratios_size(), 1e6 * result.reference_seconds(),
      1e6 * result.candidate_seconds(), timing.paper_speedup(), timing.sm_mhz_low(),
      timing.sm_mhz_high(), timing.gpu_shared() ? ", shared" : "",
      timing.gpu_throttled() ? ", throttled" : "");
  repeats->speedups.push_back(result.speedup());
  if (timing.has_paper_speedup()) repeats->paper.push_back(timing.paper_speedup());
  repeats->widths.push_back((timing.speedup_high() - timing.speedup_low()) / 2 / result.speedup());
}

// Median absolute deviation, relative to the median.
double Deviation(const std::vector<double>& values) {
  const double middle = Median(values);
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - middle) / middle);
  return Median(std::move(distances));
}

absl::Status Run(Bench* bench) {
  ASSIGN_OR_RETURN(const std::string reference, ReadFile(UserPath(absl::GetFlag(FLAGS_reference))));
  std::string candidate = ReferenceAsCandidate(reference);
  if (!absl::GetFlag(FLAGS_candidate).empty()) {
    ASSIGN_OR_RETURN(candidate, ReadFile(UserPath(absl::GetFlag(FLAGS_candidate))));
  }
  BackendOptions options;
  options.kind = BackendKind::kCuda;
  options.workers = absl::GetFlag(FLAGS_workers);
  options.sandbox = absl::GetFlag(FLAGS_sandbox);
  ASSIGN_OR_RETURN(const auto backend, MakeBackend(options));
  ExecRequest request;
  request.set_reference_source(reference);
  request.set_candidate_source(candidate);
  Repeats repeats;
  int number = 0;
  const auto measure = [&](bool measured) -> absl::StatusOr<double> {
    ASSIGN_OR_RETURN(const ExecResult result,
                     backend->Run(request, absl::Now() + absl::Minutes(5)));
    if (measured) Note(++number, result, &repeats);
    return result.speedup();
  };
  RETURN_IF_ERROR(bench->Measure({measure}).status());
  bench->set_subject("measured speedups");
  const auto& [speedups, paper, widths, without_time] = repeats;
  const std::string of =
      absl::StrCat(speedups.size(), " measurements of ", BaseName(absl::GetFlag(FLAGS_reference)));
  bench->Add(of, {{"speedup", Median(speedups), "x", std::nullopt, std::nullopt, speedups},
                  {"median absolute deviation", 100 * Deviation(speedups), "%"},
                  {"half width of the intervals", 100 * Median(widths), "%"},
                  Count("measurements without a time", without_time)});
  bench->Add(of + ", with launches, mean of 10 each",
             {{"speedup", Median(paper), "x", std::nullopt, std::nullopt, paper},
              {"median absolute deviation", 100 * Deviation(paper), "%"}});
  return absl::OkStatus();
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::RunBench(
      {.usage = "How far repeated measurements of a speedup differ.", .warmup = 0, .repeats = 20},
      argc, argv, tritonrl::Run);
}
