#include "tools/distill/distill.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "base/endpoint/ask_all.h"
#include "base/endpoint/response_journal.h"
#include "base/file.h"
#include "base/progress.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "tasks/response_style.h"
#include "tools/distill/sample.h"
#include "tools/endpoint/data_tool.h"
#include "trainer/grpo/verification.h"

namespace tritonrl {

namespace {

using Json = nlohmann::ordered_json;

// Bytes of lines that are collected before they are written.
constexpr size_t kBufferBytes = 1 << 20;

std::string KeyOf(const Task& task, int sample) { return absl::StrCat(task.id, "#", sample); }

// The place of a response in the journal, and the result of its check.
struct Place {
  int64_t offset = 0, bytes = 0;
  bool cut = false;
  SampleCheck check;
};

class Distiller {
 public:
  Distiller(const DistillOptions& options, EndpointClient* client)
      : options_(options), client_(client), journal_(options.out + "/responses.jsonl") {}

  absl::StatusOr<DistillSummary> Run() {
    summary_.tasks = static_cast<int64_t>(options_.tasks.size());
    summary_.asked = summary_.tasks * options_.samples;
    for (const Task& task : options_.tasks) {
      for (int sample = 0; sample < options_.samples; ++sample) {
        places_[KeyOf(task, sample)] = std::nullopt;
      }
    }
    RETURN_IF_ERROR(Ask());
    summary_.counts = client_->counts();
    if (summary_.interrupted) return summary_;
    RETURN_IF_ERROR(Check());
    if (summary_.interrupted) return summary_;
    if (summary_.responses == 0) {
      RETURN_IF_ERROR(summary_.ended);
      return absl::UnavailableError(
          absl::StrCat("the teacher gave no response; the first request failed: ", first_failure_,
                       "; the same command asks again"));
    }
    RETURN_IF_ERROR(CheckKept());
    RETURN_IF_ERROR(Write());
    return summary_;
  }

 private:
  // All tasks get their first sample before any gets its second, so that a run that a ceiling ends
  // has some of each.
  AskItem ItemOf(int64_t index) const {
    const Task& task = options_.tasks[index % summary_.tasks];
    const int sample = static_cast<int>(index / summary_.tasks);
    AskItem item = {.key = KeyOf(task, sample),
                    .request = RequestFor(options_.ask, task.id, sample)};
    EndpointRequest& request = item.request;
    if (options_.completion) {
      request.prompt = options_.prompt(task);
    } else {
      request.messages = {{.role = "user", .content = options_.prompt(task)}};
    }
    return item;
  }

  absl::Status Ask() {
    AskAllOptions ask;
    ask.journal = journal_;
    ask.label = "responses";
    ask.stop = options_.stop;
    ask.messages = options_.messages;
    ASSIGN_OR_RETURN(
        const AskAllSummary asked,
        AskAll(
            summary_.asked, [this](int64_t i) -> absl::StatusOr<AskItem> { return ItemOf(i); }, ask,
            client_));
    summary_.interrupted = asked.interrupted;
    summary_.ended = asked.ended;
    summary_.failed = asked.failed;
    if (!asked.failures.empty()) first_failure_ = asked.failures[0];
    return absl::OkStatus();
  }

  // Checks all responses of the journal that belong to this call's tasks and samples.
  absl::Status Check() {
    Verification verification;
    if (options_.check == CheckLevel::kFull) {
      VerificationOptions verify;
      verify.config = options_.verifier;
      verify.seed = options_.ask.seed;
      verify.journal = options_.out + "/verdicts.jsonl";
      verify.cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
      ASSIGN_OR_RETURN(verification, StartVerification(verify));
    }
    Verifier* const verifier = verification.verifier.get();
    most_ = 4 * std::max(1, verification.options.parallel);
    absl::flat_hash_map<std::string, const Task*> tasks;
    for (const Task& task : options_.tasks) tasks[task.id] = &task;
    Progress bar({.label = "checks", .total = summary_.asked, .out = options_.messages});
    const absl::Status read = ReadResponses(journal_, [&](const StoredResponse& stored) {
      const auto place = places_.find(stored.key);
      if (place == places_.end()) return absl::OkStatus();  // of a run with more samples
      const std::string id = stored.key.substr(0, stored.key.rfind('#'));
      RETURN_IF_ERROR(CheckOne(*tasks.at(id), stored, verifier));
      bar.Tick(++summary_.responses, "");
      if (verifier != nullptr) RETURN_IF_ERROR(verification.Health());
      return options_.stop() ? absl::CancelledError("stopped") : absl::OkStatus();
    });
    if (verifier != nullptr && !read.ok()) verifier->Close();
    AwaitAtMost(0);
    summary_.interrupted = absl::IsCancelled(read);
    if (!summary_.interrupted) RETURN_IF_ERROR(read);
    return verifier != nullptr ? verification.Health() : absl::OkStatus();
  }

  absl::Status CheckOne(const Task& task, const StoredResponse& stored, Verifier* verifier) {
    Place place = {.offset = stored.offset, .bytes = stored.bytes};
    const EndpointChoice& choice = stored.response.choices[0];
    place.cut = choice.finish_reason == "length";
    // A key occurs once in the journal. The map keeps its size, so pointers into it stay valid.
    std::optional<Place>* const slot = &places_[stored.key];
    *slot = place;
    if (place.cut) return absl::OkStatus();
    AwaitAtMost(most_);
    {
      absl::MutexLock lock(&mutex_);
      ++checking_;
    }
    CheckSample(task, TaughtText(choice), options_.style, options_.check, verifier,
                [this, slot](SampleCheck check) {
                  absl::MutexLock lock(&mutex_);
                  (*slot)->check = std::move(check);
                  --checking_;
                });
    return absl::OkStatus();
  }

  // Waits until at most `count` checks are running.
  void AwaitAtMost(int64_t count) {
    absl::MutexLock lock(&mutex_);
    const auto few = [&] {
      mutex_.AssertHeld();
      return checking_ <= count;
    };
    mutex_.Await(absl::Condition(&few));
  }

  // An error if sft_train.jsonl would be empty.
  absl::Status CheckKept() const {
    const auto eval_tasks = EvalTasks(options_.tasks, options_.eval_share, options_.ask.seed);
    std::map<std::string, int64_t> reasons;
    int64_t kept = 0, whole = 0, without_end = 0;
    for (const Task& task : options_.tasks) {
      for (int sample = 0; sample < options_.samples; ++sample) {
        const std::optional<Place>& place = places_.at(KeyOf(task, sample));
        if (!place.has_value()) continue;
        whole += place->cut ? 0 : 1;
        without_end += place->check.no_plan_end ? 1 : 0;
        const std::string reason = LeftOut(*place);
        if (reason.empty() && !eval_tasks.contains(task.id)) return absl::OkStatus();
        ++(reason.empty() ? kept : reasons[reason.substr(0, reason.find(": "))]);
      }
    }
    std::vector<std::string> counts;
    if (kept > 0) counts.push_back(absl::StrCat("of the evaluation split: ", kept));
    for (const auto& [reason, count] : reasons) {
      counts.push_back(absl::StrCat(reason, ": ", count));
    }
    // Perhaps a teacher whose plans do not end.
    const char* const advice =
        whole > 0 && without_end == whole
            ? "; no plan ends with </think>: if the teacher gives none, try --response_style=plain "
              "(the same command with it asks nothing again)"
            : "";
    return absl::FailedPreconditionError(absl::StrCat(
        "none of ", summary_.responses, summary_.responses == 1 ? " response" : " responses",
        " is for sft_train.jsonl (", absl::StrJoin(counts, ", "), "), so nothing is written; ",
        journal_, " keeps them", advice, summary_.ended.ok() ? "" : "; ",
        summary_.ended.ok() ? "" : Message(summary_.ended)));
  }

  absl::Status Write() {
    const absl::flat_hash_set<std::string> eval_tasks =
        EvalTasks(options_.tasks, options_.eval_share, options_.ask.seed);
    // Each file is complete or not there at all.
    RETURN_IF_ERROR(ReplaceFile(options_.out + "/sft_train.jsonl", [&](int train) {
      return ReplaceFile(options_.out + "/sft_eval.jsonl", [&](int eval) {
        return ReplaceFile(options_.out + "/left_out.jsonl", [&](int left_out) {
          return WriteLines(eval_tasks, train, eval, left_out);
        });
      });
    }));
    return WriteFileAtomic(options_.out + "/summary.json", SummaryJson());
  }

  // Writes in the order of tasks and samples, whatever the order in which the responses came.
  absl::Status WriteLines(const absl::flat_hash_set<std::string>& eval_tasks, int train, int eval,
                          int left_out) {
    Lines train_lines(train, options_.out + "/sft_train.jsonl");
    Lines eval_lines(eval, options_.out + "/sft_eval.jsonl");
    Lines left_out_lines(left_out, options_.out + "/left_out.jsonl");
    for (const Task& task : options_.tasks) {
      const bool for_eval = eval_tasks.contains(task.id);
      int64_t taught = 0;
      for (int sample = 0; sample < options_.samples; ++sample) {
        const std::string key = KeyOf(task, sample);
        const std::optional<Place>& place = places_.at(key);
        if (!place.has_value()) continue;
        Count(*place);
        if (const std::string reason = LeftOut(*place); !reason.empty()) {
          ++summary_.left_out[std::string(reason.substr(0, reason.find(": ")))];
          RETURN_IF_ERROR(left_out_lines.Add(Json{{"key", key}, {"reason", reason}}));
          continue;
        }
        ++taught;
        ++(for_eval ? summary_.eval : summary_.train);
        ASSIGN_OR_RETURN(const StoredResponse stored,
                         ReadResponseAt(journal_, place->offset, place->bytes));
        RETURN_IF_ERROR((for_eval ? eval_lines : train_lines)
                            .Add(LineOf(task, sample, stored.response, place->check)));
      }
      if (taught == 0) ++summary_.tasks_without_sample;
    }
    RETURN_IF_ERROR(train_lines.Flush());
    RETURN_IF_ERROR(eval_lines.Flush());
    return left_out_lines.Flush();
  }

  void Count(const Place& place) {
    summary_.cut += place.cut ? 1 : 0;
    summary_.response_form += place.check.response ? 1 : 0;
    summary_.syntax += place.check.syntax ? 1 : 0;
    summary_.valid += place.check.valid ? 1 : 0;
    summary_.compiled += place.check.compiled ? 1 : 0;
    summary_.correct += place.check.correct ? 1 : 0;
    summary_.no_plan_end += place.check.no_plan_end ? 1 : 0;
    summary_.no_verdict += place.check.no_verdict ? 1 : 0;
  }

  // Why a response is not taught; "": it is.
  std::string LeftOut(const Place& place) const {
    if (place.cut) return "cut off: the answer reached the limit of tokens";
    if (place.check.Passes(options_.keep)) return "";
    const std::string& reason = place.check.reason;
    return place.check.no_verdict ? absl::StrCat("no verdict: ", reason) : reason;
  }

  Json LineOf(const Task& task, int sample, const EndpointResponse& response,
              const SampleCheck& check) {
    const std::string text = TaughtText(response.choices[0]);
    summary_.bytes += static_cast<int64_t>(text.size());
    Json verdict = {{"verify", CheckLevelName(options_.check)}};
    if (options_.check != CheckLevel::kNone) {
      verdict["syntax"] = check.syntax;
      verdict["valid"] = check.valid;
      if (!check.reason.empty()) verdict["reason"] = check.reason;
    }
    if (options_.check == CheckLevel::kFull) {
      verdict["compiled"] = check.compiled;
      verdict["correct"] = check.correct;
      verdict["speedup"] = check.speedup;
      verdict["modelled"] = check.modelled;
    }
    return Json{{"prompt", options_.prompt(task)},
                {"response", text},
                {"task", task.id},
                {"sample", sample},
                {"teacher", options_.teacher},
                {"model", response.model.empty() ? options_.ask.model : response.model},
                {"temperature", options_.ask.temperature},
                {"top_p", options_.ask.top_p},
                {"response_style", std::string(PlanStyleName(options_.style.plan))},
                {"verdict", std::move(verdict)}};
  }

  std::string SummaryJson() const {
    const DistillSummary& s = summary_;
    Json json = {{"teacher", options_.teacher},
                 {"model", options_.ask.model},
                 {"temperature", options_.ask.temperature},
                 {"top_p", options_.ask.top_p},
                 {"response_style", std::string(PlanStyleName(options_.style.plan))},
                 {"verify", CheckLevelName(options_.check)},
                 {"tasks", s.tasks},
                 {"samples_asked", s.asked},
                 {"responses", s.responses},
                 {"cut_off", s.cut},
                 {"response_form", s.response_form},
                 {"syntax", s.syntax},
                 {"valid", s.valid},
                 {"compiled", s.compiled},
                 {"correct", s.correct},
                 {"no_verdict", s.no_verdict},
                 {"train", s.train},
                 {"eval", s.eval},
                 {"tasks_without_sample", s.tasks_without_sample},
                 {"prompt_tokens", s.counts.prompt_tokens},
                 {"completion_tokens", s.counts.completion_tokens},
                 {"cost", s.counts.cost}};
    json["left_out"] = Json::object();
    for (const auto& [reason, count] : s.left_out) json["left_out"][reason] = count;
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  // Collects lines of JSON and writes them in large parts.
  class Lines {
   public:
    Lines(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
    absl::Status Add(const Json& json) {
      text_ += json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
      return text_.size() < kBufferBytes ? absl::OkStatus() : Flush();
    }
    absl::Status Flush() {
      RETURN_IF_ERROR(WriteAll(fd_, text_, path_));
      text_.clear();
      return absl::OkStatus();
    }

   private:
    const int fd_;
    const std::string path_;
    std::string text_;
  };

  const DistillOptions& options_;
  EndpointClient* const client_;
  const std::string journal_;
  DistillSummary summary_;
  std::string first_failure_;                                      // of a request of this run
  absl::flat_hash_map<std::string, std::optional<Place>> places_;  // of each key that is wanted
  int64_t most_ = 1;                                               // checks at the same time
  absl::Mutex mutex_;
  int64_t checking_ ABSL_GUARDED_BY(mutex_) = 0;
};

std::string Share(int64_t part, int64_t whole) {
  if (whole == 0) return absl::StrCat(part);
  return absl::StrFormat("%d (%.1f%%)", part, 100.0 * part / whole);
}

}  // namespace

absl::StatusOr<DistillSummary> Distill(const DistillOptions& options, EndpointClient* client) {
  Distiller distiller(options, client);
  return distiller.Run();
}

std::string DistillTable(const DistillSummary& s, CheckLevel check) {
  std::vector<std::pair<std::string, std::string>> rows = {
      {"tasks", absl::StrCat(s.tasks)},
      {"samples asked", absl::StrCat(s.asked)},
      {"responses", Share(s.responses, s.asked)},
      {"cut off", Share(s.cut, s.responses)},
      {"response form", Share(s.response_form, s.responses)}};
  if (check != CheckLevel::kNone) {
    rows.emplace_back("syntax", Share(s.syntax, s.responses));
    rows.emplace_back("valid", Share(s.valid, s.responses));
  }
  if (check == CheckLevel::kFull) {
    rows.emplace_back("compiled", Share(s.compiled, s.responses));
    rows.emplace_back("correct", Share(s.correct, s.responses));
    rows.emplace_back("no verdict", Share(s.no_verdict, s.responses));
  }
  rows.emplace_back("written: train", absl::StrCat(s.train));
  rows.emplace_back("written: eval", absl::StrCat(s.eval));
  rows.emplace_back("tasks without a sample", absl::StrCat(s.tasks_without_sample));
  rows.emplace_back("prompt tokens", absl::StrCat(s.counts.prompt_tokens));
  rows.emplace_back("answer tokens", absl::StrCat(s.counts.completion_tokens));
  if (s.counts.cost > 0) rows.emplace_back("cost", absl::StrFormat("$%.2f", s.counts.cost));
  std::string text = TwoColumns(rows);
  for (const auto& [reason, count] : s.left_out) {
    absl::StrAppend(&text, "left out, ", reason, ": ", count, "\n");
  }
  return text;
}

}  // namespace tritonrl
