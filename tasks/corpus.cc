#include "tasks/corpus.h"

#include <cstdio>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/random.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "tasks/composition.h"
#include "tasks/mistakes.h"
#include "tasks/program.h"
#include "tasks/prompt.h"

namespace tritonrl {
namespace {

// One task in four is a single operator.
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
  Task task;
  task.source = WriteReference(composition, shape);
  example.prompt = BuildPrompt(task, PromptStyle::kMini);
  example.reference = std::move(task.source);
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
  const std::string partial = absl::StrCat(path, ".partial");
  errno = 0;
  std::ofstream file(partial, std::ios::binary | std::ios::trunc);
  for (uint64_t i = first; file && i < first + count; ++i) {
    file << CorpusExampleToJson(MakeCorpusExample(settings, i), with_references) << '\n';
  }
  file.close();
  if (!file) {
    const absl::Status status = ErrnoStatus(errno, "write the corpus to", partial);
    std::remove(partial.c_str());
    return status;
  }
  return RenameFile(partial, path);
}

}  // namespace tritonrl
