#include "verify/cli/batch.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/hash.h"
#include "base/status.h"
#include "exec/device_backend.h"
#include "nlohmann/json.hpp"
#include "tasks/response_style.h"
#include "verify/cli/case_reader.h"
#include "verify/pipeline/progress_recorder.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxVerdictBytes = 16 << 20;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Text(const Json& json, const char* name) {
  const auto member = json.find(name);
  return member != json.end() && member->is_string() ? member->get<std::string>() : "";
}

}  // namespace

std::string BatchLineToJson(const BatchLine& line) {
  Json json;
  json["id"] = Json::parse(line.id_json);
  if (line.line > 0) json["line"] = line.line;
  if (line.input_error.empty()) {
    json["input_hash"] = line.input_hash;
    json["verdict"] = Json::parse(VerdictToJson(line.verdict));
  } else {
    json["task"] = line.task;
    json["input_error"] = line.input_error;
  }
  return Dump(json);
}

absl::StatusOr<BatchLine> ParseBatchLine(const std::string& text) {
  const Json json = Json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("is not a verdict");
  BatchLine line;
  if (const auto id = json.find("id"); id != json.end()) line.id_json = Dump(*id);
  const auto number = json.find("line");
  if (number != json.end() && number->is_number_integer()) line.line = number->get<int64_t>();
  line.task = Text(json, "task");
  line.input_error = Text(json, "input_error");
  line.input_hash = Text(json, "input_hash");
  if (!line.input_error.empty()) return line;
  const auto verdict = json.find("verdict");
  if (verdict == json.end()) {
    return absl::InvalidArgumentError(
        json.contains("failed_layer") ? "is a verdict of an older version" : "is not a verdict");
  }
  absl::StatusOr<Verdict> read = VerdictFromJson(Dump(*verdict));
  if (!read.ok() || !read->has_outcome()) {
    return absl::InvalidArgumentError("is not a verdict of this version");
  }
  line.verdict = *std::move(read);
  return line;
}

std::string OutcomeLabel(const BatchLine& line) {
  if (!line.input_error.empty()) return "input_error";
  const Outcome::Reason reason = line.verdict.outcome().reason();
  return reason == Outcome::OK ? "correct" : ReasonName(reason);
}

std::string FailedLayerLabel(const BatchLine& line) {
  const Layer layer = line.verdict.failed_layer();
  return layer == LAYER_NONE ? "" : LayerName(layer);
}

std::string InputHash(const Case& c, const std::string& settings) {
  const std::string candidate =
      c.response.has_value()
          ? absl::StrCat("response ", PlanStyleName(c.style.plan), " ",
                         CodeBlockName(c.style.code_block), " ", c.truncated, "\n", *c.response)
          : c.candidate_source;
  return Sha256Hex(absl::StrCat(settings, "\n", c.reference_source.size(), "\n", c.reference_source,
                                candidate))
      .substr(0, 32);
}

std::string LineKey(const Case& c) {
  if (!c.error.empty() && c.line > 0) return absl::StrCat("line ", c.line);
  return absl::StrCat(c.error.empty() ? "id " : "error ", c.id_json);
}

std::string LineKey(const BatchLine& line) {
  if (!line.input_error.empty() && line.line > 0) return absl::StrCat("line ", line.line);
  return absl::StrCat(line.input_error.empty() ? "id " : "error ", line.id_json);
}

void BatchTotals::Count(const BatchLine& line) {
  if (!line.input_error.empty()) {
    ++input_errors;
  } else if (IsInfraError(line.verdict)) {
    ++infra_errors;
  } else {
    ++(line.verdict.failed_layer() == LAYER_NONE ? correct : failed);
  }
  ++by_layer[{FailedLayerLabel(line), OutcomeLabel(line)}];
}

absl::StatusOr<std::unique_ptr<BatchFile>> BatchFile::Open(const std::string& path) {
  std::unique_ptr<BatchFile> file(new BatchFile());
  ASSIGN_OR_RETURN(file->lines_, JsonlJournal::Open(path, kMaxVerdictBytes, [&](const Line& line) {
                     return file->Note(path, line);
                   }));
  return file;
}

absl::StatusOr<bool> BatchFile::Note(const std::string& path, const Line& text) {
  const absl::StatusOr<BatchLine> line = ParseBatchLine(text.text);
  if (!line.ok()) {
    return absl::DataLossError(absl::StrCat(path, ", line ", text.number, " ",
                                            Message(line.status()),
                                            "; remove the line, or give "
                                            "another file to --out"));
  }
  hashes_[Hash64(LineKey(*line))] = Hash64(line->input_hash);
  totals_.Count(*line);
  return true;
}

absl::StatusOr<bool> BatchFile::Has(const Case& c, const std::string& input_hash) const {
  const auto found = hashes_.find(Hash64(LineKey(c)));
  if (found == hashes_.end()) return false;
  if (c.error.empty() && found->second != Hash64(input_hash)) {
    return absl::FailedPreconditionError(
        absl::StrCat(c.where, ": ", lines_->path(), " holds a verdict for id ", c.id_json,
                     " with other sources or settings; give another file to --out"));
  }
  return true;
}

absl::Status BatchFile::Append(const BatchLine& line) {
  RETURN_IF_ERROR(lines_->Append(BatchLineToJson(line)));
  totals_.Count(line);
  return absl::OkStatus();
}

namespace {

// Limits the messages about a file with many broken lines.
constexpr int kErrorsShown = 20;

// A case whose line is not written yet. Its sources were moved to the verifier.
struct Slot {
  BatchLine line;
  bool ready = false;
};

// The slots in the order of the input, shared by the batch and the verifier's threads. Callbacks
// own it too, because they may run after the batch has ended.
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
    // After an error of a file no verdict can be written, so the remaining work is cancelled.
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

  // Starts cases until the window is full or the input ends.
  absl::Status Fill() {
    while (!at_end_ && Size() < static_cast<size_t>(std::max(1, options_.max_in_flight))) {
      ASSIGN_OR_RETURN(std::optional<Case> next, reader_->Next());
      if (!next.has_value()) {
        at_end_ = true;
        return absl::OkStatus();
      }
      const std::string hash = InputHash(*next, settings_);
      ASSIGN_OR_RETURN(const bool there, file_->Has(*next, hash));
      if (there) {
        ++summary_.already_done;
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

  // The progress rate is measured from the first case that this run starts. The recorder has no
  // journal: BatchFile writes the lines.
  void StartRecorder() {
    if (recorder_.has_value()) return;
    recorder_.emplace(ProgressOptions{.label = "verify",
                                      .total = summary_.cases,
                                      .first = summary_.already_done,
                                      .out = options_.messages});
  }

  void Begin(Case c, const std::string& hash) {
    auto slot = std::make_shared<Slot>();
    slot->line = {.id_json = c.id_json, .line = c.line, .task = c.task, .input_hash = hash};
    if (!c.error.empty()) {
      slot->line.input_error = absl::StrCat(c.where, ": ", c.error);
      slot->ready = true;
      Complain(slot->line.input_error);
    }
    {
      absl::MutexLock lock(&window_->mutex);
      window_->slots.push_back(slot);
    }
    if (!c.error.empty()) return;
    VerifyRequest request;
    request.task = {.id = c.task, .source = std::move(c.reference_source)};
    request.code = std::move(c.candidate_source);
    if (c.response.has_value()) request.response = *std::move(c.response);
    request.style = c.style;
    request.truncated = c.truncated;
    request.key = c.id;
    verifier_->Submit(std::move(request), [window = window_, slot](Verdict verdict) {
      absl::MutexLock lock(&window->mutex);
      slot->line.verdict = std::move(verdict);
      slot->ready = true;
    });
  }

  void Complain(const std::string& input_error) {
    if (++errors_ <= kErrorsShown) {
      recorder_->Print(absl::StrCat("verify: ", input_error));
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
      if (slot->line.verdict.outcome().reason() == Outcome::CANCELLED) continue;
      RETURN_IF_ERROR(file_->Append(slot->line));
      recorder_->Done();
      ++summary_.checked;
    }
    if (recorder_.has_value() && summary_.checked > 0) recorder_->Show(Counts());
    return absl::OkStatus();
  }

  std::string Counts() const {
    const BatchTotals& totals = file_->totals();
    std::string text = absl::StrCat("correct ", totals.correct, " failed ", totals.failed);
    if (totals.infra_errors > 0)
      absl::StrAppend(&text, " infrastructure errors ", totals.infra_errors);
    if (totals.input_errors > 0) absl::StrAppend(&text, " input errors ", totals.input_errors);
    return text;
  }

  const BatchOptions options_;
  Verifier* const verifier_;
  const std::string settings_;
  const std::unique_ptr<CaseReader> reader_;
  const std::unique_ptr<BatchFile> file_;
  const std::shared_ptr<Window> window_ = std::make_shared<Window>();
  std::optional<ProgressRecorder> recorder_;
  BatchSummary summary_;
  int errors_ = 0;
  bool at_end_ = false;
};

}  // namespace

absl::StatusOr<BatchSummary> RunBatch(const BatchOptions& options, Verifier* verifier) {
  ASSIGN_OR_RETURN(std::unique_ptr<CaseReader> reader, CaseReader::Open(options.in, options.cases));
  ASSIGN_OR_RETURN(std::unique_ptr<BatchFile> file, BatchFile::Open(options.out));
  return Batch(options, verifier, std::move(reader), std::move(file)).Run();
}

std::string SummaryText(const BatchSummary& summary) {
  const BatchTotals& totals = summary.totals;
  std::string text = absl::StrCat(
      summary.cases, " cases: ", totals.correct, " correct, ", totals.failed, " failed, ",
      totals.infra_errors, " infrastructure errors, ", totals.input_errors, " input errors (",
      summary.checked, " written now, ", summary.already_done, " were there)\n");
  for (const auto& [key, count] : totals.by_layer) {
    if (key.first.empty()) continue;
    absl::StrAppendFormat(&text, "  %-14s %-20s %d\n", key.first, key.second, count);
  }
  const int64_t missing = summary.cases - summary.checked - summary.already_done;
  if (missing > 0) {
    absl::StrAppend(&text, "  ", missing, " not checked; the same command goes on with them\n");
  }
  return text;
}

}  // namespace tritonrl
