#include "trainer/grpo/sample_runner.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/status.h"
#include "trainer/grpo/plan_tokens.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {

absl::StatusOr<std::unique_ptr<InfraErrorJournal>> InfraErrorJournal::Open(
    const std::string& path) {
  std::unique_ptr<InfraErrorJournal> errors(new InfraErrorJournal());
  if (path.empty()) return errors;
  const auto keep = [&](const Line& line) -> absl::StatusOr<bool> {
    absl::StatusOr<Verdict> verdict = VerdictFromJson(line.text);
    if (!verdict.ok() || verdict->key().empty()) {
      return absl::DataLossError(
          absl::StrCat(path, ", line ", line.number, " is damaged; remove the file to go on"));
    }
    const std::string key = verdict->key();
    errors->verdicts_[key] = *std::move(verdict);
    return true;
  };
  ASSIGN_OR_RETURN(errors->journal_, JsonlJournal::Open(path, JsonlJournal::kMaxLineBytes, keep,
                                                        JsonlJournal::Lock::kNone));
  return errors;
}

void InfraErrorJournal::Add(const Verdict& verdict) {
  Verdict kept;
  kept.set_key(verdict.key());
  kept.set_task_id(verdict.task_id());
  *kept.mutable_outcome() = verdict.outcome();
  if (verdicts_.emplace(kept.key(), kept).second) pending_.push_back(VerdictToJson(kept));
}

absl::Status InfraErrorJournal::Commit() {
  if (pending_.empty() || journal_ == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(journal_->AppendLines(pending_));
  pending_.clear();
  return absl::OkStatus();
}

const Verdict* InfraErrorJournal::Find(const std::string& key) const {
  auto it = verdicts_.find(key);
  return it == verdicts_.end() ? nullptr : &it->second;
}

namespace {

constexpr absl::Duration kTurn = absl::Milliseconds(20);

// The name of a kept sample, with its prompt: another prompt gives another sample.
std::string KeptName(const SampleBatch& batch, const SampleGroup& group, int index) {
  const std::vector<int32_t>& prompt = group.task->tokens;
  const absl::string_view bytes(reinterpret_cast<const char*>(prompt.data()),
                                prompt.size() * sizeof(int32_t));
  return absl::StrCat(SampleRunner::SampleName(batch, group, index), " ", absl::Hex(Hash64(bytes)));
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
                           const ResponseStyle& style, InfraErrorJournal* infra_errors)
    : engine_(engine),
      verifier_(verifier),
      tokenizer_(tokenizer),
      style_(style),
      infra_errors_(infra_errors),
      mailbox_(std::make_shared<Mailbox>()) {}

SampleRunner::~SampleRunner() { Abandon(); }

std::string SampleRunner::SampleName(const SampleBatch& batch, const SampleGroup& group,
                                     int index) {
  return absl::StrCat(batch.name, "/", group.slot, "/", group.task->task.id, "/", index);
}

absl::Status SampleRunner::Start(std::shared_ptr<SampleBatch> batch, int samples_per_group) {
  batch->started = absl::Now();
  batch->style = style_;
  for (size_t g = 0; g < batch->groups.size(); ++g) {
    SampleGroup& group = batch->groups[g];
    group.samples.assign(samples_per_group, VerifiedSample());
    batch->num_samples += samples_per_group;
  }
  if (batch->num_samples == 0) batch->all_generated = batch->all_verified = batch->started;
  RETURN_IF_ERROR(Restore(batch));
  for (size_t g = 0; g < batch->groups.size(); ++g) Request(batch, static_cast<int>(g));
  return SubmitPending();
}

// Takes the samples that are kept from an earlier run.
absl::Status SampleRunner::Restore(const std::shared_ptr<SampleBatch>& batch) {
  if (samples_ == nullptr) return absl::OkStatus();
  std::vector<std::pair<int, Sample>> kept;
  for (size_t g = 0; g < batch->groups.size(); ++g) {
    const SampleGroup& group = batch->groups[g];
    for (size_t i = 0; i < group.samples.size(); ++i) {
      const Sample* known = samples_->Find(KeptName(*batch, group, static_cast<int>(i)));
      if (known == nullptr) continue;
      kept.emplace_back(static_cast<int>(g), *known);
      kept.back().second.index = static_cast<int>(i);
    }
  }
  RETURN_IF_ERROR(samples_->Reserve(0, 0, unverified_ + static_cast<int>(kept.size())));
  for (auto& [group, sample] : kept) Accept(batch, group, std::move(sample));
  return absl::OkStatus();
}

// Adds requests for the group's samples that are missing, one for each row of their indices.
void SampleRunner::Request(const std::shared_ptr<SampleBatch>& batch, int g) {
  const SampleGroup& group = batch->groups[g];
  const int count = static_cast<int>(group.samples.size());
  for (int first = 0; first < count;) {
    int end = first;
    while (end < count && !group.samples[end].generated) ++end;
    if (end == first) {
      ++first;
      continue;
    }
    GenerateRequest request;
    request.id = next_request_++;
    request.prompt = group.task->tokens;
    request.first_index = first;
    request.n = end - first;
    request.sampling = group.sampling;
    // The slot is part of the key because a step may draw a task twice.
    request.key = {batch->seed, batch->step,
                   MixKeys({Hash64(group.task->task.id), static_cast<uint64_t>(group.slot)})};
    requests_[request.id] = {batch, g};
    pending_.push_back(std::move(request));
    first = end;
  }
}

absl::StatusOr<bool> SampleRunner::ReserveFirst() {
  if (samples_ == nullptr || reserved_first_) return true;
  const GenerateRequest& first = pending_.front();
  const int outstanding = static_cast<int>(engine_->Outstanding());
  const absl::Status room =
      samples_->Reserve(first.n, first.sampling.max_tokens, unverified_ + outstanding);
  if (absl::IsResourceExhausted(room)) {
    // Samples that end and verdicts that are written free the room that they do not need.
    if (outstanding == 0 && unverified_ == 0) room_error_ = room;
    return false;
  }
  RETURN_IF_ERROR(room);
  reserved_first_ = true;
  return true;
}

absl::Status SampleRunner::SubmitPending() {
  while (!pending_.empty() && room_error_.ok()) {
    ASSIGN_OR_RETURN(const bool room, ReserveFirst());
    if (!room) return absl::OkStatus();
    absl::Status status = engine_->Submit(pending_.front());
    if (absl::IsResourceExhausted(status) && engine_->Outstanding() > 0) return absl::OkStatus();
    if (!status.ok()) {
      const auto& [batch, group] = requests_[pending_.front().id];
      return AddContext(status, absl::StrCat("task ", batch->groups[group].task->task.id));
    }
    pending_.pop_front();
    reserved_first_ = false;
  }
  return absl::OkStatus();
}

absl::Status SampleRunner::TakeSample(absl::Time deadline) {
  absl::StatusOr<Sample> next = engine_->Next(deadline);
  if (absl::IsDeadlineExceeded(next.status())) return absl::OkStatus();
  if (!next.ok()) return AddContext(next.status(), "generation failed");
  auto it = requests_.find(next->request_id);
  if (it == requests_.end()) return absl::OkStatus();  // an abandoned batch
  const std::shared_ptr<SampleBatch> batch = it->second.first;
  const int g = it->second.second;
  RETURN_IF_ERROR(
      AddContext(FailureOf(*next), absl::StrCat("task ", batch->groups[g].task->task.id)));
  if (samples_ != nullptr) {
    const SampleGroup& group = batch->groups[g];
    RETURN_IF_ERROR(
        samples_->Add(KeptName(*batch, group, next->index), *next, group.sampling.max_tokens));
  }
  Accept(batch, g, *std::move(next));
  const auto& samples = batch->groups[g].samples;
  if (std::all_of(samples.begin(), samples.end(), [](const auto& s) { return s.generated; })) {
    requests_.erase(it);
  }
  return SubmitPending();
}

void SampleRunner::Accept(const std::shared_ptr<SampleBatch>& batch, int g, Sample sample) {
  VerifiedSample& verified = batch->groups[g].samples[sample.index];
  verified.sample = std::move(sample);
  verified.text = tokenizer_->Decode(verified.sample.tokens);
  verified.plan_end = PlanTokens(*tokenizer_, verified.sample.tokens, style_);
  verified.plan_kind = ClassifyPlan(ReadResponse(verified.text, style_).plan);
  verified.generated = true;
  batch->generated_tokens += static_cast<int64_t>(verified.sample.tokens.size());
  if (++batch->generated == batch->num_samples) batch->all_generated = absl::Now();
  ++unverified_;
  Verify(batch, g, verified.sample.index);
}

void SampleRunner::Verify(const std::shared_ptr<SampleBatch>& batch, int group, int index) {
  const SampleGroup& owner = batch->groups[group];
  const VerifiedSample& verified = owner.samples[index];
  VerifyRequest request;
  request.task = owner.task->task;
  request.response = verified.text;
  request.style = style_;
  request.truncated = verified.sample.finish_reason == FinishReason::kLength;
  request.key = SampleName(*batch, owner, index);
  const Verdict* known = batch->reproducible ? infra_errors_->Find(request.key) : nullptr;
  if (known != nullptr) {
    absl::MutexLock lock(&mailbox_->mutex);
    mailbox_->entries.push_back({batch, group, index, *known});
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
    --unverified_;
    SampleBatch& batch = *entry.batch;
    VerifiedSample& verified = batch.groups[entry.group].samples[entry.index];
    verified.verdict = std::move(entry.verdict);
    verified.verified = true;
    if (verified.verdict.from_cache()) ++batch.cache_hits;
    if (++batch.verified == batch.num_samples) batch.all_verified = absl::Now();
    if (IsInfraError(verified.verdict)) {
      ++batch.infra_errors;
      if (!batch.reproducible) continue;
      infra_errors_->Add(verified.verdict);
    }
  }
}

absl::Status SampleRunner::Wait(const std::shared_ptr<SampleBatch>& batch, Stage stage,
                                absl::Time deadline, const std::function<bool()>& keep_going) {
  while (true) {
    TakeVerdicts(absl::ZeroDuration());
    const int done = stage == Stage::kGenerated ? batch->generated : batch->verified;
    if (done == batch->num_samples) return absl::OkStatus();
    if (samples_ != nullptr && !pending_.empty() && engine_->Outstanding() == 0) {
      RETURN_IF_ERROR(SubmitPending());
    }
    RETURN_IF_ERROR(room_error_);
    if (!keep_going()) return absl::CancelledError(absl::StrCat(batch->name, " was stopped"));
    if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          batch->name, ": ", batch->num_samples - batch->generated, " samples not generated and ",
          batch->generated - batch->verified, " not verified within the time allowed; raise ",
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
  reserved_first_ = false;
  unverified_ = 0;
  // Later verdicts go to the old mailbox, which nothing reads.
  mailbox_ = std::make_shared<Mailbox>();
  const absl::Time give_up = absl::Now() + absl::Seconds(10);
  while (engine_->Outstanding() > 0 && absl::Now() < give_up) {
    absl::StatusOr<Sample> next = engine_->Next(absl::Now() + kTurn);
    if (!next.ok() && !absl::IsDeadlineExceeded(next.status())) return;
  }
}

}  // namespace tritonrl
