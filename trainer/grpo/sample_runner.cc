#include "trainer/grpo/sample_runner.h"

#include <algorithm>
#include <atomic>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/status.h"
#include "verify/verdict.h"

namespace tritonrl {
namespace {

constexpr absl::Duration kTurn = absl::Milliseconds(20);

// The ids that spell "</think>": one special token where the tokenizer has it.
TokenSplitIds MakeSplitIds(const Tokenizer& tokenizer) {
  TokenSplitIds ids;
  ids.think_close = tokenizer.Encode("</think>");
  return ids;
}

// Keeps the most tokens that one of `n` samples has.
auto LongestOf(int n, std::shared_ptr<std::atomic<int>> longest) {
  return [longest = std::move(longest), tokens = std::vector<int>(n)](int index, int32_t,
                                                                      float) mutable {
    if (++tokens[index] > longest->load()) longest->store(tokens[index]);
  };
}

}  // namespace

struct SampleRunner::Mailbox {
  struct Entry {
    std::shared_ptr<SampleBatch> batch;
    int group;
    int index;
    Verdict verdict;
  };
  absl::Mutex mutex;
  std::vector<Entry> entries ABSL_GUARDED_BY(mutex);
};

SampleRunner::SampleRunner(Engine* engine, Verifier* verifier, const Tokenizer* tokenizer,
                           FaultJournal* faults)
    : engine_(engine),
      verifier_(verifier),
      tokenizer_(tokenizer),
      faults_(faults),
      split_ids_(MakeSplitIds(*tokenizer)),
      mailbox_(std::make_shared<Mailbox>()) {}

SampleRunner::~SampleRunner() { Abandon(); }

std::string SampleRunner::SampleName(const SampleBatch& batch, const SampleGroup& group,
                                     int index) {
  return absl::StrCat(batch.name, "/", group.slot, "/", group.task->task.id, "/", index);
}

absl::Status SampleRunner::Start(std::shared_ptr<SampleBatch> batch, int samples_per_group) {
  batch->started = absl::Now();
  for (size_t g = 0; g < batch->groups.size(); ++g) {
    SampleGroup& group = batch->groups[g];
    group.samples.assign(samples_per_group, JudgedSample());
    batch->wanted += samples_per_group;
    GenerateRequest request;
    request.id = next_request_++;
    request.prompt = group.task->tokens;
    request.n = samples_per_group;
    request.sampling = group.sampling;
    if (group.longest != nullptr) request.on_token = LongestOf(samples_per_group, group.longest);
    // The slot is part of the key, as a task may be drawn twice in one step.
    request.key = {batch->seed, batch->step,
                   MixKeys({Hash64(group.task->task.id), static_cast<uint64_t>(group.slot)})};
    requests_[request.id] = {batch, static_cast<int>(g)};
    pending_.push_back(std::move(request));
  }
  if (batch->wanted == 0) batch->all_generated = batch->all_judged = batch->started;
  return SubmitPending();
}

absl::Status SampleRunner::SubmitPending() {
  while (!pending_.empty()) {
    absl::Status status = engine_->Submit(pending_.front());
    if (absl::IsResourceExhausted(status) && engine_->Outstanding() > 0) return absl::OkStatus();
    if (!status.ok()) {
      const auto& [batch, group] = requests_[pending_.front().id];
      return AddContext(status, absl::StrCat("task ", batch->groups[group].task->task.id));
    }
    pending_.pop_front();
  }
  return absl::OkStatus();
}

absl::Status SampleRunner::TakeSample(absl::Time deadline) {
  absl::StatusOr<Sample> next = engine_->Next(deadline);
  if (absl::IsDeadlineExceeded(next.status())) return absl::OkStatus();
  if (!next.ok()) return AddContext(next.status(), "generation failed");
  auto it = requests_.find(next->request_id);
  if (it == requests_.end()) return absl::OkStatus();  // abandoned
  const std::shared_ptr<SampleBatch> batch = it->second.first;
  const int g = it->second.second;
  RETURN_IF_ERROR(
      AddContext(FailureOf(*next), absl::StrCat("task ", batch->groups[g].task->task.id)));
  JudgedSample& judged = batch->groups[g].samples[next->index];
  judged.sample = *std::move(next);
  judged.text = tokenizer_->Decode(judged.sample.tokens);
  judged.plan_end = SplitTokens(judged.sample.tokens, split_ids_).plan_end;
  judged.plan_kind = ClassifyPlan(SplitResponseText(judged.text).plan);
  judged.generated = true;
  batch->generated_tokens += static_cast<int64_t>(judged.sample.tokens.size());
  if (++batch->generated == batch->wanted) batch->all_generated = absl::Now();
  const int index = judged.sample.index;
  const auto& samples = batch->groups[g].samples;
  if (std::all_of(samples.begin(), samples.end(), [](const auto& s) { return s.generated; })) {
    requests_.erase(it);
  }
  Judge(batch, g, index);
  return SubmitPending();
}

void SampleRunner::Judge(const std::shared_ptr<SampleBatch>& batch, int group, int index) {
  const SampleGroup& owner = batch->groups[group];
  const JudgedSample& judged = owner.samples[index];
  VerifyRequest request;
  request.task = owner.task->task;
  request.response = judged.text;
  request.truncated = judged.sample.finish_reason == FinishReason::kLength;
  request.key = SampleName(*batch, owner, index);
  const FaultOfOurs* fault = batch->repeatable ? faults_->Find(request.key) : nullptr;
  if (fault != nullptr) {
    Verdict verdict;
    verdict.set_key(request.key);
    verdict.set_task_id(request.task.id);
    *verdict.mutable_fault_of_ours() = *fault;
    Summarize(&verdict);
    absl::MutexLock lock(&mailbox_->mutex);
    mailbox_->entries.push_back({batch, group, index, std::move(verdict)});
    return;
  }
  verifier_->Submit(std::move(request), [box = mailbox_, batch, group, index](Verdict verdict) {
    absl::MutexLock lock(&box->mutex);
    box->entries.push_back({batch, group, index, std::move(verdict)});
  });
}

void SampleRunner::TakeVerdicts(absl::Duration wait) {
  std::vector<Mailbox::Entry> entries;
  {
    absl::MutexLock lock(&mailbox_->mutex);
    mailbox_->mutex.AwaitWithTimeout(
        absl::Condition(
            +[](std::vector<Mailbox::Entry>* e) { return !e->empty(); }, &mailbox_->entries),
        wait);
    entries.swap(mailbox_->entries);
  }
  for (Mailbox::Entry& entry : entries) {
    SampleBatch& batch = *entry.batch;
    JudgedSample& judged = batch.groups[entry.group].samples[entry.index];
    judged.verdict = std::move(entry.verdict);
    judged.judged = true;
    if (judged.verdict.from_cache()) ++batch.cache_hits;
    if (++batch.judged == batch.wanted) batch.all_judged = absl::Now();
    if (IsFaultOfOurs(judged.verdict)) {
      ++batch.faults_of_ours;
      if (!batch.repeatable) continue;
      faults_->Add(SampleName(batch, batch.groups[entry.group], entry.index),
                   judged.verdict.fault_of_ours());
    }
  }
}

absl::Status SampleRunner::Wait(const std::shared_ptr<SampleBatch>& batch, Stage stage,
                                absl::Time deadline, const std::function<bool()>& keep_going) {
  while (true) {
    TakeVerdicts(absl::ZeroDuration());
    const int done = stage == Stage::kGenerated ? batch->generated : batch->judged;
    if (done == batch->wanted) return absl::OkStatus();
    if (!keep_going()) return absl::CancelledError(absl::StrCat(batch->name, " was stopped"));
    if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          batch->name, ": ", batch->wanted - batch->generated, " samples not generated and ",
          batch->generated - batch->judged, " not verified within the time allowed; raise ",
          "step_timeout_s, or lower sampling.max_response_tokens or verifier.limits.seconds"));
    }
    if (engine_->Outstanding() > 0) {
      RETURN_IF_ERROR(TakeSample(absl::Now() + kTurn));
    } else {
      TakeVerdicts(kTurn);
    }
  }
}

void SampleRunner::Abandon() {
  if (engine_ == nullptr) return;
  for (const auto& [id, unused] : requests_) engine_->Cancel(id);
  requests_.clear();
  pending_.clear();
  // Verdicts still to come go to the old mailbox, which nobody reads.
  mailbox_ = std::make_shared<Mailbox>();
  const absl::Time give_up = absl::Now() + absl::Seconds(10);
  while (engine_->Outstanding() > 0 && absl::Now() < give_up) {
    absl::StatusOr<Sample> next = engine_->Next(absl::Now() + kTurn);
    if (!next.ok() && !absl::IsDeadlineExceeded(next.status())) return;
  }
}

}  // namespace tritonrl
