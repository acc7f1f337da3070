#include "base/endpoint/ask_all.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "base/endpoint/response_journal.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/jsonl.h"
#include "base/progress.h"
#include "base/random.h"
#include "base/status.h"

namespace tritonrl {

namespace {

constexpr size_t kFailuresShown = 20;

// A line of the journal without the response's text.
constexpr int64_t kLineBytes = 1024;
// Of a token in JSON; tokens of programs and English have 3 to 5 bytes.
constexpr int64_t kTokenBytes = 16;
constexpr int64_t kUnlimitedBytes = 1 << 20;  // of a response to a request without max_tokens

// The room that the response to a request takes in the journal.
int64_t MostBytes(const EndpointRequest& request, const EndpointOptions& options) {
  const int64_t text = request.max_tokens > 0
                           ? std::max(request.n, 1) * kTokenBytes * request.max_tokens
                           : kUnlimitedBytes;
  return kLineBytes + std::min(text, options.max_reply_bytes);
}

// A request of the run.
struct Asked {
  AskItem item;
  std::string hash;   // of the item's request
  int refused = 0;    // its responses of this run in another form
  int64_t bytes = 0;  // reserved for its next response
};

struct Finished {
  Asked asked;
  absl::StatusOr<EndpointResponse> response;
};

// The seed of a request that got `refused` responses in another form; in [0, 2^31), as some
// endpoints take no larger one.
int64_t SeedAfter(int64_t seed, int64_t refused) {
  if (refused == 0) return seed;
  return static_cast<int64_t>(
      MixKeys({static_cast<uint64_t>(seed), static_cast<uint64_t>(refused)}) >> 33);
}

class Asker {
 public:
  Asker(const AskAllOptions& options, EndpointClient* client, int64_t count)
      : options_(options), client_(client) {
    summary_.total = count;
  }

  absl::Status Open() {
    RETURN_IF_ERROR(CreateDirectories(DirName(options_.journal)));
    const auto note = [this](const Line& line) -> absl::StatusOr<bool> {
      ASSIGN_OR_RETURN(const StoredResponse stored, ParseResponseLine(options_.journal, line));
      if (!stored.refused.empty()) {
        ++refused_[stored.key];
        // Journals that were joined by hand may have two. Which of them counts is the user's
        // choice.
      } else if (!known_.try_emplace(stored.key, stored.request_hash).second) {
        return absl::DataLossError(absl::StrCat(options_.journal, ", line ", line.number,
                                                " holds a second response for ", stored.key,
                                                "; remove one of the two lines"));
      }
      if (options_.count_earlier) client_->AddEarlier(stored.response.usage);
      return true;
    };
    ASSIGN_OR_RETURN(journal_,
                     JsonlJournal::Open(options_.journal, JsonlJournal::kMaxLineBytes, note));
    return journal_->AppendLines({});  // reports a folder without write permission now
  }

  absl::StatusOr<AskAllSummary> Run(
      absl::FunctionRef<absl::StatusOr<AskItem>(int64_t index)> item) {
    const absl::Status run = Loop(item);
    if (!run.ok()) EndAsking();
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
      const int64_t bytes = std::max(MostBytes(next.request, client_->options()), largest_line_);
      absl::Status room = journal_->Reserve(reserved_ + bytes);
      while (absl::IsResourceExhausted(room) && waiting_ > 0) {
        TakeFinished();
        RETURN_IF_ERROR(write_error_);
        if (Ends()) return absl::OkStatus();
        room = journal_->Reserve(reserved_ + bytes);
      }
      RETURN_IF_ERROR(room);
      Submit({.item = std::move(next), .hash = hash, .bytes = bytes});
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
    if (summary_.interrupted || !summary_.ended.ok()) EndAsking();
    return ends_;
  }

  void EndAsking() {
    ends_ = true;
    client_->CancelWaiting();
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

  void Submit(Asked asked) {
    ++waiting_;
    reserved_ += asked.bytes;
    EndpointRequest request = asked.item.request;
    if (const auto found = refused_.find(asked.item.key);
        found != refused_.end() && request.seed.has_value()) {
      request.seed = SeedAfter(*request.seed, found->second);
    }
    client_->Submit(std::move(request), [shared = shared_, asked = std::move(asked)](
                                            absl::StatusOr<EndpointResponse> response) mutable {
      if (response.ok()) response->raw.clear();
      absl::MutexLock lock(&shared->mutex);
      shared->finished.push_back({std::move(asked), std::move(response)});
    });
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
    // Only now: after a kill the next run knows of each refused response, and takes another seed.
    for (Asked& asked : std::exchange(again_, {})) {
      if (!write_error_.ok() || Ends()) continue;
      write_error_ = journal_->Reserve(reserved_ + asked.bytes);
      if (write_error_.ok()) Submit(std::move(asked));
    }
    if (bar_ != nullptr) {
      std::string text = CountsText(client_->counts());
      if (summary_.refused > 0) absl::StrAppend(&text, ", ", summary_.refused, " in another form");
      bar_->Tick(First() + summary_.answered + summary_.failed, text);
    }
  }

  void Keep(Finished finished) {
    Asked& asked = finished.asked;
    reserved_ -= asked.bytes;
    if (!finished.response.ok()) {
      Fail(asked.item.key, finished.response.status());
      return;
    }
    StoredResponse stored = {.key = asked.item.key,
                             .request_hash = asked.hash,
                             .response = *std::move(finished.response)};
    const absl::Status form =
        options_.check == nullptr ? absl::OkStatus() : options_.check(stored.response);
    if (!form.ok()) stored.refused = form.message().empty() ? form.ToString() : Message(form);
    unwritten_.push_back(ResponseLine(stored));
    largest_line_ = std::max(largest_line_, static_cast<int64_t>(unwritten_.back().size()) + 1);
    if (form.ok()) {
      failures_in_a_row_ = 0;
      ++summary_.answered;
      return;
    }
    ++summary_.refused;
    ++refused_[asked.item.key];
    if (++asked.refused < client_->options().max_attempts) {
      again_.push_back(std::move(asked));
      return;
    }
    Fail(asked.item.key, absl::UnavailableError(absl::StrCat(
                             "the endpoint ", client_->options().url, " gave ", asked.refused,
                             asked.refused == 1 ? " response" : " responses",
                             " in another form; the last: ", stored.refused)));
  }

  // Counts a request that ended without an accepted response.
  void Fail(const std::string& key, const absl::Status& status) {
    if (absl::IsCancelled(status)) return;
    ++summary_.failed;
    ++failures_in_a_row_;
    if (EndsAllRequests(status)) {
      if (summary_.ended.ok()) summary_.ended = status;
      return;
    }
    if (summary_.failures.size() < kFailuresShown) {
      summary_.failures.push_back(absl::StrCat(key, ": ", status.message()));
      bar_->Print(summary_.failures.back());
    }
    const int most = options_.max_failures_in_a_row;
    if (most > 0 && failures_in_a_row_ >= most && summary_.ended.ok()) {
      summary_.ended = absl::Status(
          status.code(), absl::StrCat(most, " requests in a row failed; ", status.message()));
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
  absl::flat_hash_map<std::string, std::string> known_;  // key -> hash of its answered request
  absl::flat_hash_map<std::string, int64_t> refused_;    // key -> its refused responses
  std::unique_ptr<Progress> bar_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  int64_t waiting_ = 0;       // requests that the client has
  int64_t reserved_ = 0;      // bytes, for the responses to them
  int64_t largest_line_ = 0;  // bytes
  std::vector<Asked> again_;  // refused requests that are to be sent again
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
