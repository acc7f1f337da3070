// Fuzzes the linter and the response splitter. Meant for AddressSanitizer:
//   bazel run --config=asan //verify/linter:fuzz -- --count=1000000
//   bazel run //verify/linter:fuzz -- --seed=12 --only=314986 --print
// Exit code 1 when an input broke a promise or took too long; a crash is the sanitizer's to report.
#include <cstdio>
#include <string>

#include "absl/flags/flag.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/program.h"
#include "base/status.h"
#include "verify/linter/mutate.h"

ABSL_FLAG(uint64_t, count, 100000, "inputs: programs to lint and responses to split");
ABSL_FLAG(uint64_t, seed, 1, "of the mutations");
ABSL_FLAG(uint64_t, first, 0, "number of the first input");
ABSL_FLAG(int64_t, only, -1, "number of one input to run again; with --print to see it");
ABSL_FLAG(absl::Duration, limit, absl::Seconds(10), "CPU time that one input may take");
ABSL_FLAG(absl::Duration, stop_after, absl::InfiniteDuration(), "stop early after this long");
ABSL_FLAG(bool, print, false, "print the programs in place of linting them");

namespace tritonrl {
namespace {

int Main() {
  auto corpus = FuzzCorpus();
  if (!corpus.ok()) {
    std::fprintf(stderr, "%s\n", Message(corpus.status()).c_str());
    return 2;
  }
  const Mutator mutator(*std::move(corpus), absl::GetFlag(FLAGS_seed));
  const int64_t only = absl::GetFlag(FLAGS_only);
  const uint64_t first = only >= 0 ? static_cast<uint64_t>(only) : absl::GetFlag(FLAGS_first);
  const uint64_t count = only >= 0 ? 1 : absl::GetFlag(FLAGS_count);
  if (absl::GetFlag(FLAGS_print)) {
    for (uint64_t i = first; i < first + count; ++i) std::fputs(mutator.Program(i).c_str(), stdout);
    return 0;
  }
  const absl::Time deadline = absl::Now() + absl::GetFlag(FLAGS_stop_after);
  FuzzReport total;
  constexpr uint64_t kStep = 5000;
  for (uint64_t done = 0; done < count && absl::Now() < deadline; done += kStep) {
    auto report = Fuzz(mutator, first + done, std::min(kStep, count - done),
                       absl::GetFlag(FLAGS_limit), deadline);
    if (!report.ok()) {
      std::fprintf(stderr, "%s\n", Message(report.status()).c_str());
      return 1;
    }
    total.inputs += report->inputs;
    total.accepted += report->accepted;
    total.refused += report->refused;
    if (report->slowest > total.slowest) {
      total.slowest = report->slowest;
      total.slowest_index = report->slowest_index;
    }
    std::printf("%llu inputs, %llu accepted, %llu refused, slowest %s (input %llu)\n",
                static_cast<unsigned long long>(total.inputs),
                static_cast<unsigned long long>(total.accepted),
                static_cast<unsigned long long>(total.refused),
                absl::FormatDuration(total.slowest).c_str(),
                static_cast<unsigned long long>(total.slowest_index));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::StartProgram("Fuzzes the linter and the response splitter.", argc, argv);
  return tritonrl::Main();
}
