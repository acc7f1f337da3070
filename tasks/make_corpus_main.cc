// Writes a corpus for the supervised fine-tuning of the mini policy as JSON Lines.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "base/file.h"
#include "base/program.h"
#include "base/status.h"
#include "tasks/dataset.h"

ABSL_FLAG(std::string, out, "", "File to write; required.");
ABSL_FLAG(uint64_t, count, 60000, "Number of (task, response) pairs.");
ABSL_FLAG(uint64_t, first, 0, "Index of the first pair: other parts of the same endless corpus.");
ABSL_FLAG(uint64_t, seed, 0, "Seed; the same seed gives the same corpus.");
ABSL_FLAG(double, hard, 0.8, "Probability of a wrong formula for a hard operator.");
ABSL_FLAG(double, easy, 0.05, "Probability of a wrong formula for any other operator.");
ABSL_FLAG(double, struct, 0.3, "Probability of a structural mistake or shortcut in a response.");
ABSL_FLAG(bool, with_reference, false, "Also write each task's source, to verify responses.");

int main(int argc, char** argv) {
  const std::vector<char*> rest =
      tritonrl::StartProgram("make_corpus --out=FILE.jsonl [--count=N --seed=S ...]", argc, argv);
  if (rest.size() > 1 || absl::GetFlag(FLAGS_out).empty()) {
    std::fprintf(stderr, "make_corpus: pass --out=FILE.jsonl and no other words; see --help\n");
    return 2;
  }
  tritonrl::CorpusSettings settings;
  settings.seed = absl::GetFlag(FLAGS_seed);
  settings.hard_rate = absl::GetFlag(FLAGS_hard);
  settings.easy_rate = absl::GetFlag(FLAGS_easy);
  settings.structural_rate = absl::GetFlag(FLAGS_struct);
  const std::string path = tritonrl::UserPath(absl::GetFlag(FLAGS_out));
  const absl::Status status =
      tritonrl::WriteCorpus(settings, absl::GetFlag(FLAGS_first), absl::GetFlag(FLAGS_count),
                            absl::GetFlag(FLAGS_with_reference), path);
  if (!status.ok()) {
    std::fprintf(stderr, "make_corpus: %s\n", tritonrl::Message(status).c_str());
    return 1;
  }
  std::printf("wrote %llu examples to %s\n",
              static_cast<unsigned long long>(absl::GetFlag(FLAGS_count)), path.c_str());
  return 0;
}
