// Writes the linter's corpus as cases for `//verify:verify --in`: its cheats, and the honest
// programs that say what they compute, with their references.
//   bazel run //verify/linter:cases > cases.jsonl
#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/program.h"
#include "base/status.h"
#include "verify/linter/testdata_reader.h"

namespace tritonrl {
namespace {

// For cheats that the linter refuses before anything runs: any reference will do.
constexpr char kAnyReference[] = R"(import torch
class Model(torch.nn.Module):
    def forward(self, x): return torch.softmax(x, -1)
def get_inputs(): return [torch.randn(16, 64)]
def get_init_inputs(): return []
)";

int Main() {
  for (const char* file :
       {"honest.py", "fresh1_honest.py", "fresh2_honest.py", "fresh3_honest.py", "fresh4_honest.py",
        "fresh5_honest.py", "fresh6_honest.py", "followed_honest.py", "ablation_honest.py",
        "certain_cheats.py", "left_cheats.py"}) {
    const auto cases = ReadLintCases(file);
    if (!cases.ok()) {
      std::fprintf(stderr, "%s\n", Message(cases.status()).c_str());
      return 2;
    }
    for (const LintCase& c : *cases) {
      if (c.rules.empty() && c.reference.empty()) continue;
      const nlohmann::json line = {
          {"id", absl::StrCat(file, ":", c.name)},
          {"task", c.name},
          {"reference_source", c.reference.empty() ? kAnyReference : c.reference},
          {"candidate_source", c.source}};
      std::printf("%s\n", line.dump().c_str());
    }
  }
  return 0;
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::StartProgram(
      "Writes the linter's corpus as cases for //verify:verify --in.\n"
      "  bazel run //verify/linter:cases > cases.jsonl",
      argc, argv);
  return tritonrl::Main();
}
