#include "verify/batch.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "verify/cases.h"
#include "verify/work_list.h"

namespace tritonrl {
namespace {

// A broken file of a million lines should not write a million sentences.
constexpr int kErrorsShown = 20;

// A case whose line is not written yet. Its sources are with the verifier.
struct Slot {
  Case c;
  std::string input_hash;
  bool ready = false;
  Verdict verdict;
};

// What the verifier's threads and the batch share; outlives the batch if a callback is late.
struct Window {
  absl::Mutex mutex;
  std::deque<std::shared_ptr<Slot>> slots ABSL_GUARDED_BY(mutex);
  bool FrontReady() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return !slots.empty() && slots.front()->ready;
  }
};

class Batch {
 public:
  Batch(const BatchOptions& options, Verifier* verifier, std::unique_ptr<CaseReader> reader,
        std::unique_ptr<BatchFile> file)
      : options_(options),
        verifier_(verifier),
        settings_(verifier->settings()),
        reader_(std::move(reader)),
        file_(std::move(file)) {}

  absl::StatusOr<BatchSummary> Run() {
    summary_.cases = reader_->total();
    const absl::Status status = Loop();
    // An error of a file: what runs is dropped, as it could not be written anyway.
    if (!status.ok()) verifier_->Close();
    RETURN_IF_ERROR(status);
    summary_.totals = file_->totals();
    return summary_;
  }

 private:
  absl::Status Loop() {
    while (true) {
      if (!summary_.interrupted && options_.stop()) {
        summary_.interrupted = true;
        verifier_->Close();
      }
      if (!summary_.interrupted) RETURN_IF_ERROR(Fill());
      RETURN_IF_ERROR(WriteReady());
      absl::MutexLock lock(&window_->mutex);
      if (window_->slots.empty() && (at_end_ || summary_.interrupted)) break;
      window_->mutex.AwaitWithTimeout(absl::Condition(window_.get(), &Window::FrontReady),
                                      absl::Milliseconds(100));
    }
    if (recorder_.has_value() && !summary_.interrupted && summary_.checked > 0) {
      recorder_->Finish(Counts());
    }
    recorder_.reset();
    return absl::OkStatus();
  }

  // Takes cases until the window is full or the input is at its end.
  absl::Status Fill() {
    while (!at_end_ && Size() < static_cast<size_t>(std::max(1, options_.window))) {
      ASSIGN_OR_RETURN(std::optional<Case> next, reader_->Next());
      if (!next.has_value()) {
        at_end_ = true;
        return absl::OkStatus();
      }
      const std::string hash = InputHash(*next, settings_);
      ASSIGN_OR_RETURN(const bool there, file_->Has(*next, hash));
      if (there) {
        ++summary_.was_there;
        if (recorder_.has_value()) recorder_->Done();
        continue;
      }
      StartRecorder();
      Begin(*std::move(next), hash);
    }
    return absl::OkStatus();
  }

  size_t Size() {
    absl::MutexLock lock(&window_->mutex);
    return window_->slots.size();
  }

  // The rate counts from the first case of this run on. Lines are the batch file's.
  void StartRecorder() {
    if (recorder_.has_value()) return;
    recorder_.emplace(ProgressOptions{.label = "verify",
                                      .total = summary_.cases,
                                      .first = summary_.was_there,
                                      .out = options_.messages});
  }

  void Begin(Case c, const std::string& hash) {
    auto slot = std::make_shared<Slot>();
    VerifyRequest request;
    request.task = {.id = c.task, .source = std::move(c.reference_source)};
    request.code = std::move(c.candidate_source);
    request.key = c.id;
    slot->input_hash = hash;
    slot->ready = !c.error.empty();
    if (slot->ready) Complain(c);
    slot->c = std::move(c);
    {
      absl::MutexLock lock(&window_->mutex);
      window_->slots.push_back(slot);
    }
    if (!slot->c.error.empty()) return;
    verifier_->Submit(std::move(request), [window = window_, slot](Verdict verdict) {
      absl::MutexLock lock(&window->mutex);
      slot->verdict = std::move(verdict);
      slot->ready = true;
    });
  }

  void Complain(const Case& c) {
    if (++errors_ <= kErrorsShown) {
      recorder_->Print(absl::StrCat("verify: ", c.where, ": ", c.error));
    } else if (errors_ == kErrorsShown + 1) {
      recorder_->Print("verify: more broken cases follow; the output names them all");
    }
  }

  absl::Status WriteReady() {
    while (true) {
      std::shared_ptr<Slot> slot;
      {
        absl::MutexLock lock(&window_->mutex);
        if (!window_->FrontReady()) break;
        slot = std::move(window_->slots.front());
        window_->slots.pop_front();
      }
      if (slot->verdict.fault_of_ours().kind() == FaultOfOurs::CANCELLED) continue;
      RETURN_IF_ERROR(file_->Append(slot->c.error.empty()
                                        ? VerdictLine(slot->c, slot->verdict, slot->input_hash)
                                        : InputErrorLine(slot->c)));
      recorder_->Done();
      ++summary_.checked;
    }
    if (recorder_.has_value() && summary_.checked > 0) recorder_->Show(Counts());
    return absl::OkStatus();
  }

  std::string Counts() const {
    const BatchTotals& totals = file_->totals();
    std::string text = absl::StrCat("correct ", totals.correct, " failed ", totals.failed);
    if (totals.inconclusive > 0) absl::StrAppend(&text, " inconclusive ", totals.inconclusive);
    if (totals.input_errors > 0) absl::StrAppend(&text, " input errors ", totals.input_errors);
    return text;
  }

  const BatchOptions options_;
  Verifier* const verifier_;
  const std::string settings_;
  const std::unique_ptr<CaseReader> reader_;
  const std::unique_ptr<BatchFile> file_;
  const std::shared_ptr<Window> window_ = std::make_shared<Window>();
  std::optional<Recorder> recorder_;
  BatchSummary summary_;
  int errors_ = 0;
  bool at_end_ = false;
};

}  // namespace

absl::StatusOr<BatchSummary> RunBatch(const BatchOptions& options, Verifier* verifier) {
  ASSIGN_OR_RETURN(std::unique_ptr<CaseReader> reader, CaseReader::Open(options.in));
  ASSIGN_OR_RETURN(std::unique_ptr<BatchFile> file, BatchFile::Open(options.out));
  return Batch(options, verifier, std::move(reader), std::move(file)).Run();
}

std::string SummaryText(const BatchSummary& summary) {
  const BatchTotals& totals = summary.totals;
  std::string text = absl::StrCat(
      summary.cases, " cases: ", totals.correct, " correct, ", totals.failed, " failed, ",
      totals.inconclusive, " inconclusive, ", totals.input_errors, " input errors (",
      summary.checked, " written now, ", summary.was_there, " were there)\n");
  for (const auto& [key, count] : totals.by_layer) {
    if (key.first.empty()) continue;
    absl::StrAppendFormat(&text, "  %-14s %-20s %d\n", key.first, key.second, count);
  }
  const int64_t missing = summary.cases - summary.checked - summary.was_there;
  if (missing > 0) {
    absl::StrAppend(&text, "  ", missing, " not checked; the same command goes on with them\n");
  }
  return text;
}

}  // namespace tritonrl
