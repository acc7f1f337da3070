#include "eval/run/stored_run.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "eval/run/judge_all.h"
#include "eval/run/open_scores.h"
#include "parallel/process_group.h"
#include "tasks/loader.h"
#include "trainer/grpo/verification.h"
#include "trainer/program/training_program.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {
namespace {

using Json = nlohmann::ordered_json;

struct Inputs {
  std::map<std::string, Task> tasks;  // by id
  LoadedGenerations loaded;
  KernelBenchVersion version;
};

absl::StatusOr<Inputs> ReadInputs(const StoredOptions& options) {
  std::vector<Task> tasks;
  std::vector<std::string> problems;
  for (const std::string& folder : options.tasks) {
    ASSIGN_OR_RETURN(TaskSet set, LoadTasks(folder));
    tasks.insert(tasks.end(), set.tasks.begin(), set.tasks.end());
    problems.insert(problems.end(), set.problems.begin(), set.problems.end());
  }
  Inputs inputs;
  inputs.version = DetectVersion(tasks);
  ASSIGN_OR_RETURN(inputs.loaded, LoadGenerations(options.generations, tasks, options.load));
  inputs.loaded.problems.insert(inputs.loaded.problems.begin(), problems.begin(), problems.end());
  const std::vector<Task>& judged =
      inputs.loaded.own_tasks.empty() ? tasks : inputs.loaded.own_tasks;
  for (const Task& task : judged) inputs.tasks.emplace(task.id, task);
  if (options.max_tasks <= 0) return inputs;
  std::set<std::string> first;
  std::vector<Generation>& generations = inputs.loaded.generations;
  const auto end = std::find_if(generations.begin(), generations.end(), [&](const Generation& g) {
    if (first.count(g.task) == 0 && static_cast<int>(first.size()) == options.max_tasks)
      return true;
    first.insert(g.task);
    return false;
  });
  generations.erase(end, generations.end());
  return inputs;
}

VerifyRequest RequestOf(const Generation& generation, const Task& task) {
  VerifyRequest request;
  request.task = task;
  request.key = absl::StrCat(generation.task, "#", generation.sample);
  request.code = generation.code;
  request.response = generation.response.value_or("");
  request.style = generation.style;
  request.truncated = generation.truncated;
  return request;
}

absl::Status WriteFiles(const StoredOptions& options, const Inputs& inputs,
                        const std::vector<Verdict>& verdicts, const StoredResult& result) {
  if (options.output.empty()) return absl::OkStatus();
  std::string lines;
  for (size_t i = 0; i < verdicts.size(); ++i) {
    Json line = Json::parse(GenerationToJson(inputs.loaded.generations[i]));
    line["verdict"] = Json::parse(VerdictToJson(verdicts[i]));
    absl::StrAppend(&lines, line.dump(), "\n");
  }
  RETURN_IF_ERROR(WriteFileAtomic(JoinPath(options.output, "generations.jsonl"), lines));
  Json json = {
      {"generations", options.generations},
      {"layout", result.layout},
      {"tasks", options.tasks},
      {"tasks_version", result.version.name},
      {"tasks_digest", result.version.digest},
      {"evidence", result.version.evidence},
      {"samples_per_task", result.samples_per_task},
      {"rules", absl::AsciiStrToLower(VerifierConfig::Rules_Name(options.verifier.rules()))},
      {"judge", DescribeJudge(options.verifier.judge())},
      {"seed", options.seed},
      {"version", Version()},
      {"problems", result.problems}};
  json["estimates"] = Json::parse(EstimatesJson(result.estimates));
  return WriteFileAtomic(JoinPath(options.output, "results.json"), json.dump(2) + "\n");
}

absl::StatusOr<Verification> StartVerifierOf(const StoredOptions& options) {
  VerificationOptions verification;
  verification.config = options.verifier;
  verification.seed = options.seed;
  verification.cores = ThreadsFor(/*configured=*/0, *ProcessGroup::SingleProcess());
  if (!options.output.empty()) {
    RETURN_IF_ERROR(CreateDirectories(options.output));
    verification.journal = JoinPath(options.output, "verdicts.jsonl");
  }
  return StartVerification(verification);
}

// Sets ScoredSample::open. False if a stop was requested.
absl::StatusOr<bool> ScoreOpen(const StoredOptions& options, const Inputs& inputs,
                               const std::vector<Verdict>& verdicts, const SignalHandler& stop,
                               const JudgeAllOptions& judging, Verification* verification,
                               StoredResult* result) {
  std::vector<VerifyRequest> requests;
  std::vector<size_t> places;
  for (size_t i = 0; i < verdicts.size(); ++i) {
    ScoredSample& sample = result->samples[i];
    if (sample.failure == FailureKind::kNoVerdict) continue;
    sample.open = OpenScoreOf(verdicts[i]);
    if (sample.open.has_value()) continue;
    const Generation& generation = inputs.loaded.generations[i];
    requests.push_back(RequestOf(generation, inputs.tasks.at(generation.task)));
    places.push_back(i);
  }
  VerifierOptions open = verification->options;
  open.check_functionality = false;
  open.measure_time = false;
  if (!options.output.empty()) open.journal = JoinPath(options.output, "verdicts_open.jsonl");
  Verifier verifier(open, verification->backend.get(), /*judge=*/nullptr);
  RETURN_IF_ERROR(verifier.Open());
  JudgeAllOptions again = judging;
  again.label = "without functionality checks";
  ASSIGN_OR_RETURN(const auto more, JudgeAll(std::move(requests), again, stop, &verifier));
  if (!more.has_value()) return false;
  for (size_t i = 0; i < places.size(); ++i) {
    if (!IsInfraError((*more)[i])) result->samples[places[i]].open = ScoreOf((*more)[i]);
  }
  result->run_again = static_cast<int>(places.size());
  return true;
}

// Scores in the order of the generations. Unavailable: none has a verdict.
absl::Status ScoreAll(const Inputs& inputs, const std::vector<Verdict>& verdicts,
                      StoredResult* result) {
  bool any = false;
  for (size_t i = 0; i < verdicts.size(); ++i) {
    const Generation& generation = inputs.loaded.generations[i];
    ScoredSample sample = ScoreSample(verdicts[i]);
    sample.task = generation.task;
    sample.level = inputs.tasks.at(generation.task).level;
    sample.sample = generation.sample;
    sample.turn = generation.turn;
    any = any || sample.failure != FailureKind::kNoVerdict;
    if (sample.failure == FailureKind::kNoVerdict && result->first_infra_error.empty()) {
      result->first_infra_error = verdicts[i].outcome().message();
    }
    result->samples.push_back(std::move(sample));
  }
  if (any) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("no sample has a verdict because of infrastructure errors. The first: ",
                   result->first_infra_error));
}

}  // namespace

absl::StatusOr<StoredResult> JudgeStored(const StoredOptions& options, const SignalHandler& stop) {
  ASSIGN_OR_RETURN(const Inputs inputs, ReadInputs(options));
  ASSIGN_OR_RETURN(Verification verification, StartVerifierOf(options));
  StoredResult result;
  result.layout = inputs.loaded.layout;
  result.version = inputs.version;
  result.problems = inputs.loaded.problems;
  result.samples_per_task = inputs.loaded.k;
  result.stopped = true;  // until the end
  const JudgeAllOptions judging = {.deadline = absl::Now() + absl::Seconds(options.timeout_s),
                                   .health = [&] { return verification.Health(); }};
  std::vector<VerifyRequest> requests;
  for (const Generation& generation : inputs.loaded.generations) {
    requests.push_back(RequestOf(generation, inputs.tasks.at(generation.task)));
  }
  ASSIGN_OR_RETURN(const auto verdicts,
                   JudgeAll(std::move(requests), judging, stop, verification.verifier.get()));
  if (!verdicts.has_value()) return result;
  RETURN_IF_ERROR(ScoreAll(inputs, *verdicts, &result));
  if (options.without_robust) {
    ASSIGN_OR_RETURN(const bool scored,
                     ScoreOpen(options, inputs, *verdicts, stop, judging, &verification, &result));
    if (!scored) return result;
  }
  ASSIGN_OR_RETURN(result.estimates,
                   Estimate(result.samples, result.samples_per_task, {.seed = options.seed}));
  RETURN_IF_ERROR(WriteFiles(options, inputs, *verdicts, result));
  result.stopped = false;
  return result;
}

}  // namespace tritonrl
