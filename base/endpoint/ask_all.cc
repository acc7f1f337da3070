#include "base/endpoint/ask_all.h"

#include <errno.h>
#include <fcntl.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/jsonl.h"
#include "base/progress.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kFailuresShown = 20;

std::string ToLine(const StoredResponse& stored) {
  Json choices = Json::array();
  for (const EndpointChoice& choice : stored.response.choices) {
    Json json = {{"text", choice.text}};
    if (!choice.reasoning.empty()) json["reasoning"] = choice.reasoning;
    json["finish_reason"] = choice.finish_reason;
    choices.push_back(std::move(json));
  }
  const EndpointUsage& usage = stored.response.usage;
  const Json line = {{"key", stored.key},
                     {"request", stored.request_hash},
                     {"model", stored.response.model},
                     {"choices", std::move(choices)},
                     {"usage",
                      {{"prompt_tokens", usage.prompt_tokens},
                       {"completion_tokens", usage.completion_tokens},
                       {"reported", usage.reported}}}};
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<StoredResponse> FromLine(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  StoredResponse stored;
  // Parsed text may have any types; value() throws for a wrong one.
  try {
    stored.key = json.at("key").get<std::string>();
    stored.request_hash = json.at("request").get<std::string>();
    stored.response.model = json.at("model").get<std::string>();
    for (const Json& choice : json.at("choices")) {
      stored.response.choices.push_back(
          {.text = choice.at("text").get<std::string>(),
           .reasoning = choice.value("reasoning", ""),
           .finish_reason = choice.at("finish_reason").get<std::string>()});
    }
    const Json& usage = json.at("usage");
    stored.response.usage = {.prompt_tokens = usage.at("prompt_tokens").get<int64_t>(),
                             .completion_tokens = usage.at("completion_tokens").get<int64_t>(),
                             .reported = usage.at("reported").get<bool>()};
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  if (stored.response.choices.empty()) return std::nullopt;
  return stored;
}

absl::StatusOr<StoredResponse> ParseLine(const std::string& path, const Line& line) {
  std::optional<StoredResponse> stored = FromLine(line.text);
  if (!stored.has_value()) {
    return absl::DataLossError(absl::StrCat(path, ", line ", line.number,
                                            " is no response of an endpoint; remove the line"));
  }
  stored->offset = line.offset;
  stored->bytes = static_cast<int64_t>(line.text.size());
  return *std::move(stored);
}

// A finished request.
struct Finished {
  StoredResponse stored;  // the response only if `status` is OK
  absl::Status status;
};

class Asker {
 public:
  Asker(const AskAllOptions& options, EndpointClient* client, int64_t count)
      : options_(options), client_(client) {
    summary_.total = count;
  }

  absl::Status Open() {
    RETURN_IF_ERROR(CreateDirectories(DirName(options_.journal)));
    const auto note = [this](const Line& line) -> absl::StatusOr<bool> {
      ASSIGN_OR_RETURN(const StoredResponse stored, ParseLine(options_.journal, line));
      // Journals that were joined by hand may have two. Which of them counts is the user's choice.
      if (!known_.try_emplace(stored.key, stored.request_hash).second) {
        return absl::DataLossError(absl::StrCat(options_.journal, ", line ", line.number,
                                                " holds a second response for ", stored.key,
                                                "; remove one of the two lines"));
      }
      client_->AddEarlier(stored.response.usage);
      return true;
    };
    ASSIGN_OR_RETURN(journal_,
                     JsonlJournal::Open(options_.journal, JsonlJournal::kMaxLineBytes, note));
    return journal_->AppendLines({});  // reports a folder without write permission now
  }

  absl::StatusOr<AskAllSummary> Run(
      absl::FunctionRef<absl::StatusOr<AskItem>(int64_t index)> item) {
    const absl::Status run = Loop(item);
    if (!run.ok()) client_->CancelWaiting();
    // The responses in flight are waited for and kept in any case: they are paid for.
    while (waiting_ > 0) TakeFinished();
    if (!unwritten_.empty()) Write();
    if (!unwritten_.empty()) {
      const size_t lost = unwritten_.size();
      return absl::Status(write_error_.code(),
                          absl::StrCat(write_error_.message(), "; ", lost,
                                       lost == 1 ? " response is" : " responses are",
                                       " lost and will be asked again"));
    }
    bar_.reset();
    RETURN_IF_ERROR(run);
    return summary_;
  }

 private:
  absl::Status Loop(absl::FunctionRef<absl::StatusOr<AskItem>(int64_t index)> item) {
    const int64_t most = 2 * int64_t{client_->options().max_in_flight};
    for (int64_t i = 0; i < summary_.total; ++i) {
      ASSIGN_OR_RETURN(AskItem next, item(i));
      ASSIGN_OR_RETURN(const std::string body, RequestBody(next.request));
      const std::string hash = Sha256Hex(body).substr(0, 16);
      if (const auto known = known_.find(next.key); known != known_.end()) {
        if (known->second != hash) {
          return absl::FailedPreconditionError(absl::StrCat(
              options_.journal, " holds the response for ", next.key,
              " to another request (prompt, model or sampling); give another output folder"));
        }
        ++summary_.earlier;
        continue;
      }
      if (bar_ == nullptr) StartBar();
      while (waiting_ >= most) {
        TakeFinished();
        RETURN_IF_ERROR(write_error_);
      }
      if (Ends()) return absl::OkStatus();
      Submit(std::move(next), hash);
    }
    while (waiting_ > 0) {
      TakeFinished();
      RETURN_IF_ERROR(write_error_);
      (void)Ends();
    }
    return absl::OkStatus();
  }

  // True if no further request is to be sent. Requests that wait at the client are then cancelled.
  bool Ends() {
    if (ends_) return true;
    if (options_.stop()) summary_.interrupted = true;
    ends_ = summary_.interrupted || !summary_.ended.ok();
    if (ends_) client_->CancelWaiting();
    return ends_;
  }

  void StartBar() {
    bar_ = std::make_unique<Progress>(ProgressOptions{.label = options_.label,
                                                      .total = summary_.total,
                                                      .first = First(),
                                                      .out = options_.messages});
  }

  // Requests that an earlier run has done, as far as the journal tells.
  int64_t First() const {
    return std::min<int64_t>(static_cast<int64_t>(known_.size()), summary_.total);
  }

  void Submit(AskItem item, const std::string& hash) {
    ++waiting_;
    client_->Submit(
        std::move(item.request),
        [shared = shared_, key = std::move(item.key),
         hash](absl::StatusOr<EndpointResponse> response) {
          Finished finished;
          finished.stored.key = key;
          finished.stored.request_hash = hash;
          finished.status = response.status();
          if (response.ok()) {
            finished.stored.response = *std::move(response);
            finished.stored.response.raw.clear();
          }
          absl::MutexLock lock(&shared->mutex);
          shared->finished.push_back(std::move(finished));
        },
        options_.check);
  }

  // Waits, for at most 0.1 s, for finished requests, and keeps them.
  void TakeFinished() {
    std::deque<Finished> taken;
    {
      absl::MutexLock lock(&shared_->mutex);
      shared_->mutex.AwaitWithTimeout(absl::Condition(shared_.get(), &Shared::HasFinished),
                                      absl::Milliseconds(100));
      taken.swap(shared_->finished);
    }
    waiting_ -= static_cast<int64_t>(taken.size());
    for (Finished& finished : taken) Keep(std::move(finished));
    if (!unwritten_.empty()) Write();
    if (bar_ != nullptr) {
      bar_->Tick(First() + summary_.answered + summary_.failed, CountsText(client_->counts()));
    }
  }

  void Keep(Finished finished) {
    if (finished.status.ok()) {
      failures_in_a_row_ = 0;
      ++summary_.answered;
      unwritten_.push_back(ToLine(finished.stored));
      return;
    }
    if (absl::IsCancelled(finished.status)) return;
    ++summary_.failed;
    ++failures_in_a_row_;
    if (EndsAllRequests(finished.status)) {
      if (summary_.ended.ok()) summary_.ended = finished.status;
      return;
    }
    if (summary_.failures.size() < kFailuresShown) {
      summary_.failures.push_back(
          absl::StrCat(finished.stored.key, ": ", finished.status.message()));
      bar_->Print(summary_.failures.back());
    }
    const int most = options_.max_failures_in_a_row;
    if (most > 0 && failures_in_a_row_ >= most && summary_.ended.ok()) {
      summary_.ended = absl::Status(
          finished.status.code(),
          absl::StrCat(most, " requests in a row failed; ", finished.status.message()));
    }
  }

  void Write() {
    write_error_ = journal_->AppendLines(unwritten_);
    if (write_error_.ok()) unwritten_.clear();
  }

  // Outlives the asker if the client calls back late.
  struct Shared {
    absl::Mutex mutex;
    std::deque<Finished> finished ABSL_GUARDED_BY(mutex);
    bool HasFinished() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return !finished.empty(); }
  };

  const AskAllOptions& options_;
  EndpointClient* const client_;
  AskAllSummary summary_;
  std::unique_ptr<JsonlJournal> journal_;
  absl::flat_hash_map<std::string, std::string> known_;  // key -> hash of its request
  std::unique_ptr<Progress> bar_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  int64_t waiting_ = 0;  // requests that the client has
  int failures_in_a_row_ = 0;
  bool ends_ = false;
  std::vector<std::string> unwritten_;
  absl::Status write_error_;
};

std::string Short(int64_t number) {
  if (number < 10000) return absl::StrCat(number);
  if (number < 10000000) return absl::StrFormat("%.1fk", number / 1e3);
  return absl::StrFormat("%.1fM", number / 1e6);
}

}  // namespace

absl::StatusOr<AskAllSummary> AskAll(int64_t count,
                                     absl::FunctionRef<absl::StatusOr<AskItem>(int64_t index)> item,
                                     const AskAllOptions& options, EndpointClient* client) {
  Asker asker(options, client, count);
  RETURN_IF_ERROR(asker.Open());
  return asker.Run(item);
}

absl::Status ReadResponses(const std::string& journal,
                           absl::FunctionRef<absl::Status(StoredResponse)> each) {
  ASSIGN_OR_RETURN(const std::unique_ptr<LineReader> lines,
                   LineReader::Open(journal, JsonlJournal::kMaxLineBytes));
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<Line> line, lines->Next());
    if (!line.has_value() || !line->complete) return absl::OkStatus();
    ASSIGN_OR_RETURN(StoredResponse stored, ParseLine(journal, *line));
    RETURN_IF_ERROR(each(std::move(stored)));
  }
}

absl::StatusOr<StoredResponse> ReadResponseAt(const std::string& journal, int64_t offset,
                                              int64_t bytes) {
  const ScopedFd fd(open(journal.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "read", journal);
  Line line = {.text = std::string(bytes, '\0'), .offset = offset};
  RETURN_IF_ERROR(ReadAt(fd.get(), offset, bytes, line.text.data(), journal));
  return ParseLine(journal, line);
}

std::string CountsText(const EndpointCounts& counts) {
  std::string text =
      absl::StrCat(Short(counts.prompt_tokens + counts.completion_tokens), " tokens");
  if (counts.cost > 0) absl::StrAppendFormat(&text, ", $%.2f", counts.cost);
  if (counts.retries > 0) {
    absl::StrAppend(&text, ", ", counts.retries, counts.retries == 1 ? " retry" : " retries");
  }
  return text;
}

}  // namespace tritonrl
