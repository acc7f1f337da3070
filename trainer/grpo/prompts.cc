#include "trainer/grpo/prompts.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/random.h"
#include "base/status.h"
#include "tasks/dataset.h"
#include "tasks/loader.h"
#include "trainer/grpo/verification.h"
#include "trainer/learner/policy.h"

namespace tritonrl {

PreparedTask PrepareTask(Task task, const PromptFormat& format, const Tokenizer& tokenizer,
                         const ChatTemplate* chat) {
  PreparedTask prepared;
  prepared.prompt = format.Build(task);
  prepared.task = std::move(task);
  // The text of a task must not produce control tokens in the prompt.
  if (chat == nullptr) {
    prepared.tokens = tokenizer.Encode(prepared.prompt, /*parse_special=*/false);
    return prepared;
  }
  absl::StatusOr<std::vector<int32_t>> tokens =
      chat->Encode({{"user", prepared.prompt}}, /*add_generation_prompt=*/true);
  if (tokens.ok()) {
    prepared.tokens = *std::move(tokens);
  } else {
    prepared.problem = Message(tokens.status());
  }
  return prepared;
}

absl::StatusOr<PreparedTasks> LoadPreparedTasks(const std::vector<std::string>& folders,
                                                const PromptFormat& format,
                                                const Tokenizer& tokenizer, int max_prompt_tokens,
                                                const ChatTemplate* chat) {
  PreparedTasks result;
  std::set<std::string> ids;
  for (const std::string& folder : folders) {
    ASSIGN_OR_RETURN(const std::string path, FindInputPath(folder));
    ASSIGN_OR_RETURN(TaskSet set, LoadTasks(path));
    for (std::string& problem : set.problems) result.problems.push_back(std::move(problem));
    for (Task& task : set.tasks) {
      const std::string id = task.id;
      PreparedTask prepared = PrepareTask(std::move(task), format, tokenizer, chat);
      if (!prepared.problem.empty()) {
        result.problems.push_back(absl::StrCat(id, ": ", prepared.problem));
        continue;
      }
      if (static_cast<int>(prepared.tokens.size()) > max_prompt_tokens) {
        result.problems.push_back(absl::StrCat(id, ": its prompt has ", prepared.tokens.size(),
                                               " tokens, more than ",
                                               "sampling.max_prompt_tokens = ", max_prompt_tokens));
        continue;
      }
      if (!ids.insert(id).second) {
        return absl::InvalidArgumentError(absl::StrCat("task ", id, " is in two of the folders ",
                                                       absl::StrJoin(folders, ", "),
                                                       "; give a folder that holds both instead"));
      }
      result.tasks.push_back(std::move(prepared));
    }
  }
  if (result.tasks.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no task is left in ", folders.empty() ? "(no folder given)" : absl::StrJoin(folders, ", "),
        result.problems.empty() ? "" : absl::StrCat("; first problem: ", result.problems[0])));
  }
  return result;
}

absl::StatusOr<PromptFormats> LoadPromptFormats(const TasksConfig& config) {
  PromptFormats formats;
  if (config.prompt_style() != TasksConfig::FULL) return formats;
  const auto load = [](const std::string& file, const std::string& field,
                       const std::string& built_in) -> absl::StatusOr<PromptFormat> {
    if (file.empty()) return PromptFormat::FromName(built_in);
    absl::StatusOr<std::string> path = FindInputPath(file);
    if (!path.ok()) return AddContext(path.status(), field);
    absl::StatusOr<PromptFormat> format = PromptFormat::Load(*path);
    if (!format.ok()) return AddContext(format.status(), field);
    return format;
  };
  ASSIGN_OR_RETURN(formats.train, load(config.prompt_file(), "tasks.prompt_file", "train"));
  ASSIGN_OR_RETURN(formats.held_out,
                   load(config.eval_prompt_file(), "tasks.eval_prompt_file", "eval"));
  return formats;
}

std::string DescribePrompts(const PromptFormat& format, const std::vector<PreparedTask>& tasks,
                            const Tokenizer& tokenizer) {
  size_t longest = 0;
  for (const PreparedTask& task : tasks) longest = std::max(longest, task.tokens.size());
  const size_t fixed = tokenizer.Encode(format.FixedText(), /*parse_special=*/false).size();
  std::string text = absl::StrCat(format.name(), ", ", fixed, " tokens of fixed text");
  if (!tasks.empty()) {
    absl::StrAppend(&text, "; the longest of ", tasks.size(), " prompts has ", longest, " tokens");
  }
  return text;
}

absl::StatusOr<ResponseStyleChoice> ChoosePolicyStyle(
    const std::string& response_style, const std::string& code_block, const std::string& model_dir,
    const PreparedTask& prompt, const Tokenizer& tokenizer, const ChatTemplate* chat) {
  // Enough for a tag that is spelled by bytes, and white space after it.
  constexpr size_t kTail = 16;
  const std::vector<int32_t>& tokens = prompt.tokens;
  const size_t tail = std::min(kTail, tokens.size());
  return ChooseResponseStyle(response_style, code_block, model_dir,
                             chat != nullptr ? absl::string_view(chat->text()) : "",
                             tokenizer.Decode({tokens.end() - tail, tokens.end()}));
}

namespace {

// Philox stream of these draws; other uses of the run's seed have other streams.
constexpr uint64_t kPromptStream = 0x70726f6d707473;

int DrawIndex(const std::vector<double>& chances, double uniform) {
  double total = std::accumulate(chances.begin(), chances.end(), 0.0);
  double sum = 0;
  int last = 0;
  for (size_t i = 0; i < chances.size(); ++i) {
    if (chances[i] <= 0) continue;
    last = static_cast<int>(i);
    sum += chances[i] / total;
    if (uniform < sum) return last;
  }
  return last;  // `uniform` is above the rounded sum
}

}  // namespace

absl::StatusOr<PromptSampler> PromptSampler::Make(PromptSamplerOptions options,
                                                  std::vector<PreparedTask> tasks,
                                                  const Tokenizer* tokenizer) {
  PromptSampler sampler;
  sampler.tokenizer_ = tokenizer;
  for (PreparedTask& task : tasks) {
    sampler.tasks_.push_back(std::make_shared<const PreparedTask>(std::move(task)));
  }
  if (options.level_mixture.empty()) {
    std::vector<int> all(sampler.tasks_.size());
    std::iota(all.begin(), all.end(), 0);
    sampler.pools_.push_back(std::move(all));
    sampler.chances_.push_back(1);
  }
  for (size_t i = 0; i < options.level_mixture.size(); ++i) {
    std::vector<int> pool;
    for (size_t t = 0; t < sampler.tasks_.size(); ++t) {
      if (sampler.tasks_[t]->task.level == static_cast<int>(i) + 1) {
        pool.push_back(static_cast<int>(t));
      }
    }
    if (pool.empty() && options.level_mixture[i] > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("tasks.level_mixture gives level ", i + 1, " a chance of ",
                       options.level_mixture[i], ", but there is no training task of that level"));
    }
    sampler.pools_.push_back(std::move(pool));
    sampler.chances_.push_back(options.level_mixture[i]);
  }
  if (!sampler.tasks_.empty()) {
    sampler.passes_ = std::make_unique<TaskPasses>(options.seed, sampler.pools_, sampler.chances_);
  }
  sampler.options_ = std::move(options);
  return sampler;
}

PromptSampler::DrawnTasks PromptSampler::Draw(int64_t step, int count) const {
  return options_.passes ? DrawPasses(step, count) : DrawIndependent(step, count);
}

std::shared_ptr<const PreparedTask> PromptSampler::Compose(uint64_t pick) const {
  // Only the reference is used, so the settings for mistakes do not matter.
  CorpusSettings settings;
  settings.seed = MixKeys({options_.seed, kPromptStream});
  Task task;
  task.id = absl::StrCat("generated/", pick);
  CorpusExample example = MakeCorpusExample(settings, pick);
  task.source = std::move(example.reference);
  task.level = example.level;
  return std::make_shared<const PreparedTask>(
      PrepareTask(std::move(task), options_.format, *tokenizer_, options_.chat));
}

int64_t PromptSampler::ComposedAmong(int64_t prompts) const {
  return static_cast<int64_t>(options_.generated_share * static_cast<double>(prompts));
}

int64_t PromptSampler::PromptsOf(double epochs) const {
  if (passes_ == nullptr || options_.generated_share >= 1) return 0;
  return static_cast<int64_t>(std::ceil(epochs * static_cast<double>(passes_->epoch_length()) /
                                        (1 - options_.generated_share)));
}

double PromptSampler::EpochsOf(int64_t prompts) const {
  if (passes_ == nullptr) return 0;
  return static_cast<double>(prompts) * (1 - options_.generated_share) /
         static_cast<double>(passes_->epoch_length());
}

PromptSampler::DrawnTasks PromptSampler::DrawPasses(int64_t step, int count) const {
  DrawnTasks drawn;
  for (int64_t prompt = step * count; prompt < (step + 1) * count; ++prompt) {
    const int64_t composed = ComposedAmong(prompt);
    if (ComposedAmong(prompt + 1) > composed) {
      const auto number = static_cast<uint64_t>(composed);
      drawn.push_back(Compose(MixKeys({options_.seed, kPromptStream, number})));
    } else {
      drawn.push_back(tasks_[passes_->At(prompt - composed)]);
    }
  }
  return drawn;
}

PromptSampler::DrawnTasks PromptSampler::DrawIndependent(int64_t step, int count) const {
  Philox random(MixKeys({options_.seed, static_cast<uint64_t>(step)}), kPromptStream);
  DrawnTasks drawn;
  std::set<int> used;
  for (int i = 0; i < count; ++i) {
    const double kind = random.Uniform();
    const double level = random.Uniform();
    const uint64_t pick = random.Next64();
    if (kind < options_.generated_share) {
      drawn.push_back(Compose(pick));
      continue;
    }
    const std::vector<int>& pool = pools_[DrawIndex(chances_, level)];
    std::vector<int> fresh;
    for (int t : pool) {
      if (used.count(t) == 0) fresh.push_back(t);
    }
    const std::vector<int>& from = fresh.empty() ? pool : fresh;
    const int task = from[Philox(pick).Below(from.size())];
    used.insert(task);
    drawn.push_back(tasks_[task]);
  }
  return drawn;
}

namespace {

// GrpoHrdConfig.steps, or the steps of its epochs.
absl::StatusOr<int64_t> StepsOf(const GrpoHrdConfig& config, const PromptSampler& prompts) {
  if (config.steps() > 0) return config.steps();
  const int64_t wanted = prompts.PromptsOf(config.epochs());
  if (wanted == 0) {
    return absl::InvalidArgumentError(
        "steps is 0, and epochs needs task files, but tasks.generated_share is 1, so that all "
        "tasks "
        "are composed anew; set steps");
  }
  return (wanted + config.prompts_per_step() - 1) / config.prompts_per_step();
}

}  // namespace

absl::StatusOr<RunTasks> LoadRunTasks(const GrpoHrdConfig& config, const Tokenizer& tokenizer,
                                      const ChatTemplate* chat, const Verification& verification,
                                      const std::string& preflight_journal, ProcessGroup* ranks) {
  const TasksConfig& tasks = config.tasks();
  PromptSamplerOptions options;
  options.seed = config.seed();
  options.level_mixture.assign(tasks.level_mixture().begin(), tasks.level_mixture().end());
  options.generated_share = tasks.generated_share();
  options.chat = chat;
  options.passes = tasks.sampling() == TasksConfig::PASSES;
  ASSIGN_OR_RETURN(const PromptFormats formats, LoadPromptFormats(tasks));
  options.format = formats.train;
  const auto load = [&](const auto& folders, const PromptFormat& format,
                        bool check) -> absl::StatusOr<PreparedTasks> {
    ASSIGN_OR_RETURN(PreparedTasks loaded,
                     LoadPreparedTasks({folders.begin(), folders.end()}, format, tokenizer,
                                       config.sampling().max_prompt_tokens(), chat));
    if (!check) return loaded;
    const PreflightSettings preflight = {.journal = preflight_journal,
                                         .give_up = absl::Seconds(tasks.preflight_wait_s())};
    RETURN_IF_ERROR(RemoveUnsoundTasks(verification, preflight, ranks, &loaded));
    return loaded;
  };
  PreparedTasks train, held_out;
  if (tasks.train_size() > 0 || tasks.generated_share() < 1) {
    ASSIGN_OR_RETURN(train, load(tasks.train(), formats.train, tasks.preflight()));
  }
  if (tasks.held_out_size() > 0) {
    ASSIGN_OR_RETURN(held_out,
                     load(tasks.held_out(), formats.held_out, tasks.preflight_held_out()));
  }
  const int training_tasks = static_cast<int>(train.tasks.size());
  std::vector<std::string> prompt_lengths = {
      "Training prompts: " + DescribePrompts(formats.train, train.tasks, tokenizer)};
  if (!held_out.tasks.empty()) {
    prompt_lengths.push_back("Held-out prompts: " +
                             DescribePrompts(formats.held_out, held_out.tasks, tokenizer));
  }
  ASSIGN_OR_RETURN(PromptSampler prompts,
                   PromptSampler::Make(std::move(options), std::move(train.tasks), &tokenizer));
  ASSIGN_OR_RETURN(const int64_t steps, StepsOf(config, prompts));
  RunTasks set{.prompts = std::move(prompts), .training_tasks = training_tasks, .steps = steps};
  set.prompt_lengths = std::move(prompt_lengths);
  const size_t max_tasks = config.eval().max_tasks();
  if (max_tasks > 0 && held_out.tasks.size() > max_tasks) held_out.tasks.resize(max_tasks);
  for (PreparedTask& task : held_out.tasks) {
    set.held_out.push_back(std::make_shared<const PreparedTask>(std::move(task)));
  }
  set.problems = std::move(train.problems);
  set.problems.insert(set.problems.end(), held_out.problems.begin(), held_out.problems.end());
  return set;
}

}  // namespace tritonrl
