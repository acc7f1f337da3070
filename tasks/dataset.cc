#include "tasks/dataset.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/random.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "tasks/composition.h"
#include "tasks/mini_prompt.h"
#include "tasks/mistakes.h"
#include "tasks/program.h"

namespace tritonrl {

namespace {

// One task in four has a single operator.
constexpr int kLevelOneOneIn = 4;

Composition DrawTrainingComposition(Philox* random) {
  while (true) {
    const Family family = DrawFamily(random);
    const int level = random->Below(kLevelOneOneIn) == 0 ? 1 : 2;
    Composition composition = DrawComposition(family, level, random);
    if (!IsHeldOut(composition)) return composition;
  }
}

absl::Status CheckRate(const char* name, double rate) {
  if (rate >= 0 && rate <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("corpus setting ", name, " is ", rate, "; it is a chance between 0 and 1"));
}

}  // namespace

CorpusExample MakeCorpusExample(const CorpusSettings& settings, uint64_t index) {
  Philox random(MixKeys({settings.seed, index}));
  const Composition composition = DrawTrainingComposition(&random);
  const TaskShape shape = DrawShape(composition.family, &random);
  const bool fused = random.Below(2) == 0;
  const KernelPlan plan = DrawKernelPlan(composition, shape, fused, &random);

  CorpusExample example;
  example.composition = composition.Key();
  example.level = composition.level();
  example.kernels = plan.kernels();
  const std::vector<int> forms =
      DrawForms(composition, settings.hard_rate, settings.easy_rate, &random, &example.mistakes);
  Program program = WriteProgram(composition, plan, forms);
  if (random.Uniform() < settings.structural_rate) {
    const std::string name =
        ApplyRandomStructuralMistake({composition, plan, forms}, &program, &random);
    example.mistakes.push_back(absl::StrCat("struct:", name));
  }
  example.response = absl::StrCat("<think>\n", PlanText(composition, plan),
                                  "\n</think>\n```python\n", program.Text(), "```\n");
  example.reference = WriteReference(composition, shape);
  example.prompt = MiniPrompt(example.reference);
  return example;
}

std::string CorpusExampleToJson(const CorpusExample& example, bool with_reference) {
  nlohmann::ordered_json json;
  json["prompt"] = example.prompt;
  json["response"] = example.response;
  json["composition"] = example.composition;
  json["level"] = example.level;
  json["kernels"] = example.kernels;
  json["mistakes"] = example.mistakes;
  if (with_reference) json["reference"] = example.reference;
  return json.dump();
}

absl::Status WriteCorpus(const CorpusSettings& settings, uint64_t first, uint64_t count,
                         bool with_references, const std::string& path) {
  RETURN_IF_ERROR(CheckRate("hard_rate", settings.hard_rate));
  RETURN_IF_ERROR(CheckRate("easy_rate", settings.easy_rate));
  RETURN_IF_ERROR(CheckRate("structural_rate", settings.structural_rate));
  RETURN_IF_ERROR(CreateDirectories(DirName(path)));
  return ReplaceFile(path, [&](int fd) -> absl::Status {
    constexpr size_t kBufferBytes = 1 << 20;
    std::string buffer;
    for (uint64_t i = first; i < first + count; ++i) {
      absl::StrAppend(&buffer, CorpusExampleToJson(MakeCorpusExample(settings, i), with_references),
                      "\n");
      if (buffer.size() < kBufferBytes && i + 1 < first + count) continue;
      RETURN_IF_ERROR(WriteAll(fd, buffer, path));
      buffer.clear();
    }
    return absl::OkStatus();
  });
}

namespace {

// Must not change: another seed gives another suite, whose figures cannot be compared with
// published ones.
constexpr uint64_t kSuiteSeed = 1;

// A part of the suite; `counts` are the numbers of tasks by family, in the order of the enum.
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
