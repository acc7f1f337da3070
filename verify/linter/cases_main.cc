// Writes the linter's corpus as cases for `//verify:verify --in`: honest programs that say what
// they compute, with their references, and all cheats.
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
  for (const char* kind : {"honest", "cheats"}) {
    for (const char* set : {"", "fresh1_", "fresh2_", "fresh3_", "fresh4_", "fresh5_", "fresh6_",
                            "followed_", "ablation_"}) {
      const std::string file = absl::StrCat(set, kind, ".py");
      const auto cases = ReadLintCases(file);
      if (!cases.ok()) {
        std::fprintf(stderr, "%s\n", Message(cases.status()).c_str());
        return 2;
      }
      for (const LintCase& c : *cases) {
        const bool cheat = !c.rules.empty();
        if (!cheat && c.reference.empty()) continue;
        const nlohmann::json line = {
            {"id", absl::StrCat(file, ":", c.name)},
            {"task", c.name},
            {"reference_source", c.reference.empty() ? kAnyReference : c.reference},
            {"candidate_source", c.source}};
        std::printf("%s\n", line.dump().c_str());
      }
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
