#include "tasks/suite.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/random.h"
#include "tasks/composition.h"
#include "tasks/program.h"

namespace tritonrl {
namespace {

// A new seed makes a new suite, so figures measured on the old one no longer compare.
constexpr uint64_t kSuiteSeed = 1;

// How many tasks of each family, in the order of the enum.
struct Part {
  const char* folder;
  bool held_out;
  int level;
  int counts[5];
};

constexpr Part kParts[] = {
    {"train/level1", false, 1, {12, 4, 3, 2, 3}},
    {"train/level2", false, 2, {14, 10, 9, 5, 2}},
    {"heldout/level1", true, 1, {6, 1, 1, 1, 1}},
    {"heldout/level2", true, 2, {8, 5, 5, 3, 1}},
};

std::string FileName(int number, const Composition& composition) {
  return absl::StrCat(absl::StrFormat("%02d_", number),
                      absl::StrJoin(composition.uses, "_",
                                    [](std::string* out, const OperatorUse& use) {
                                      absl::StrAppend(out, use.name());
                                    }),
                      ".py");
}

}  // namespace

std::vector<SuiteFile> BuildMiniSuite() {
  std::vector<SuiteFile> files;
  std::set<std::string> seen;
  Philox random(MixKeys({kSuiteSeed}));
  for (const Part& part : kParts) {
    int number = 0;
    for (Family family : {Family::kElementwise, Family::kReduction, Family::kNormalization,
                          Family::kMatmul, Family::kLoss}) {
      for (int i = 0; i < part.counts[static_cast<int>(family)];) {
        const Composition composition = DrawComposition(family, part.level, &random);
        const std::string key = composition.Key();
        if (IsHeldOut(composition) != part.held_out || !seen.insert(key).second) continue;
        ++i;
        files.push_back({absl::StrCat(part.folder, "/", FileName(++number, composition)),
                         WriteReference(composition, DrawShape(family, &random)), key});
      }
    }
  }
  return files;
}

}  // namespace tritonrl
