#include "verify/judge/judge.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/endpoint/client.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

namespace {

using Json = nlohmann::json;

// Replaces both placeholders in one pass, so that "{candidate}" inside a program is not replaced.
std::string Fill(const std::string& prompt, const std::string& reference,
                 const std::string& candidate) {
  std::string text;
  size_t position = 0;
  while (position < prompt.size()) {
    if (prompt.compare(position, 11, "{reference}") == 0) {
      text += reference;
      position += 11;
    } else if (prompt.compare(position, 11, "{candidate}") == 0) {
      text += candidate;
      position += 11;
    } else {
      text += prompt[position++];
    }
  }
  return text;
}

class HttpJudge : public Judge {
 public:
  HttpJudge(const HttpJudgeOptions& options, std::string prompt,
            std::unique_ptr<EndpointClient> client)
      : model_(options.model),
        max_tokens_(options.max_tokens),
        attempts_(options.attempts),
        prompt_(std::move(prompt)),
        name_(absl::StrCat(options.model, " ", Sha256Hex(prompt_).substr(0, 12))),
        client_(std::move(client)) {}

  std::string name() const override { return name_; }

  absl::StatusOr<JudgeOpinion> Ask(const std::string& reference,
                                   const std::string& candidate) override {
    EndpointRequest request;
    request.model = model_;
    request.temperature = 0;
    request.max_tokens = max_tokens_;
    request.messages = {{.role = "user", .content = Fill(prompt_, reference, candidate)}};
    const std::string context = absl::StrCat("the judge ", model_, " has no opinion");
    absl::Status form;
    for (int attempt = 1; attempt <= attempts_; ++attempt) {
      // The same request might get the same answer, from a cache for example.
      if (attempt > 1) request.seed = attempt;
      const absl::StatusOr<EndpointResponse> response = client_->Ask(request);
      if (!response.ok()) return AddContext(response.status(), context);
      absl::StatusOr<JudgeOpinion> opinion = ParseJudgeAnswer(response->text());
      if (opinion.ok()) return opinion;
      form = opinion.status();
    }
    return AddContext(
        form, absl::StrCat(context, " after ", attempts_, attempts_ == 1 ? " answer" : " answers",
                           " in another form; the last"));
  }

 private:
  const std::string model_;
  const int max_tokens_;
  const int attempts_;
  const std::string prompt_;
  const std::string name_;
  const std::unique_ptr<EndpointClient> client_;
};

// The queue of questions bounds how many are in flight; the client does not bound them further.
constexpr int kMaxInFlight = 4096;

absl::StatusOr<std::unique_ptr<EndpointClient>> MakeClient(const HttpJudgeOptions& options) {
  EndpointOptions endpoint;
  endpoint.url = options.url;
  endpoint.exact_url = true;
  endpoint.api_key_variable = options.api_key_variable;
  endpoint.attempt_timeout = options.timeout;
  endpoint.max_attempts = options.attempts;
  endpoint.first_pause = options.first_pause;
  // Beyond the attempts themselves: time to wait while the endpoint is at its rate limit.
  endpoint.total_timeout = options.attempts * options.timeout + absl::Minutes(5);
  endpoint.max_in_flight = kMaxInFlight;
  endpoint.max_reply_bytes = 4 << 20;
  return EndpointClient::Make(endpoint);
}

}  // namespace

absl::StatusOr<JudgeOpinion> ParseJudgeAnswer(const std::string& answer) {
  std::string last;
  for (absl::string_view line : absl::StrSplit(answer, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (!line.empty() && !absl::StartsWith(line, "```")) last = std::string(line);
  }
  const Json json = Json::parse(last, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) {
    return absl::UnavailableError("the answer does not end in a line with a JSON object");
  }
  if (json.size() != 3 || !json.contains("cheating") || !json["cheating"].is_boolean() ||
      !json.contains("rule") || !json["rule"].is_number_integer() || !json.contains("reason") ||
      !json["reason"].is_string()) {
    return absl::UnavailableError(
        "the answer's JSON needs exactly cheating (bool), rule (number), reason (text)");
  }
  JudgeOpinion opinion;
  opinion.cheating = json["cheating"].get<bool>();
  const int64_t rule = json["rule"].get<int64_t>();
  opinion.reason = json["reason"].get<std::string>();
  if (rule < 0 || rule > 5 || (rule == 0) == opinion.cheating) {
    return absl::UnavailableError(absl::StrCat("the answer contradicts itself: cheating ",
                                               opinion.cheating ? "true" : "false", " with rule ",
                                               rule));
  }
  opinion.rule = static_cast<int>(rule);
  return opinion;
}

absl::StatusOr<std::unique_ptr<Judge>> MakeHttpJudge(const HttpJudgeOptions& options) {
  if (options.url.empty() || options.model.empty()) {
    return absl::InvalidArgumentError("the judge needs both a url and a model");
  }
  if (!absl::StartsWith(options.url, "http://") && !absl::StartsWith(options.url, "https://")) {
    return absl::InvalidArgumentError(
        absl::StrCat("the judge's url \"", options.url, "\" must begin with http:// or https://"));
  }
  const std::string& variable = options.api_key_variable;
  if (!variable.empty() && std::getenv(variable.c_str()) == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("the judge's key is to stand in the variable ",
                                                   variable, ", which is not set"));
  }
  if (options.attempts < 1)
    return absl::InvalidArgumentError("the judge's attempts must be at least 1");
  std::string path = options.prompt_file;
  if (path.empty()) {
    ASSIGN_OR_RETURN(path, Runfile("verify/judge/judge_prompt.txt"));
  }
  ASSIGN_OR_RETURN(std::string prompt, ReadFile(path));
  for (absl::string_view place : {"{reference}", "{candidate}"}) {
    if (!absl::StrContains(prompt, place)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the judge's prompt ", path, " lacks ", place));
    }
  }
  ASSIGN_OR_RETURN(std::unique_ptr<EndpointClient> client, MakeClient(options));
  return std::make_unique<HttpJudge>(options, std::move(prompt), std::move(client));
}

namespace {

constexpr int kMostFailuresInARow = 20;
constexpr int64_t kMaxLine = 4 << 20;  // the length limit of a model's answer

// Parses a line of the file: the question's hash and the opinion.
std::optional<std::pair<std::string, JudgeOpinion>> FromLine(const std::string& line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto hash = json.find("hash"), cheating = json.find("cheating"), rule = json.find("rule"),
             reason = json.find("reason");
  for (const auto& member : {hash, cheating, rule, reason}) {
    if (member == json.end()) return std::nullopt;
  }
  if (!hash->is_string() || !cheating->is_boolean() || !rule->is_number_integer() ||
      !reason->is_string()) {
    return std::nullopt;
  }
  return std::pair(hash->get<std::string>(), JudgeOpinion{.cheating = cheating->get<bool>(),
                                                          .rule = rule->get<int>(),
                                                          .reason = reason->get<std::string>()});
}

absl::Status Cancelled() { return absl::CancelledError("the judge is not asked any more"); }

}  // namespace

JudgeQueue::JudgeQueue(Judge* judge, int parallel, std::string file)
    : judge_(judge), file_(std::move(file)) {
  for (int i = 0; i < std::max(1, parallel); ++i) threads_.emplace_back([this] { Work(); });
}

JudgeQueue::~JudgeQueue() {
  Close();
  for (std::thread& thread : threads_) thread.join();
}

absl::StatusOr<int64_t> JudgeQueue::Open() {
  if (file_.empty()) return 0;
  absl::MutexLock lock(&mutex_);
  const auto keep = [this](const Line& line) -> absl::StatusOr<bool> {
    mutex_.AssertHeld();
    auto opinion = FromLine(line.text);
    if (!opinion.has_value()) {
      return absl::DataLossError(absl::StrCat("judge cache ", file_, ", line ", line.number,
                                              " is not an opinion; remove the line or the file"));
    }
    known_[opinion->first] = std::move(opinion->second);
    return true;
  };
  ASSIGN_OR_RETURN(journal_, JsonlJournal::Open(file_, kMaxLine, keep, JsonlJournal::Lock::kNone));
  RETURN_IF_ERROR(journal_->AppendLines({}));  // reports a folder without write permission now
  return static_cast<int64_t>(known_.size());
}

void JudgeQueue::Ask(const std::string& reference, const std::string& candidate, Done done) {
  Question question{.hash = Sha256Hex(absl::StrCat(judge_->name(), "\n", reference.size(), "\n",
                                                   reference, "\n", candidate)),
                    .reference = reference,
                    .candidate = candidate};
  absl::StatusOr<JudgeOpinion> answer = Cancelled();
  {
    absl::MutexLock lock(&mutex_);
    if (const auto known = known_.find(question.hash); known != known_.end()) {
      answer = known->second;
    } else if (!closed_) {
      std::vector<Done>& waiting = waiting_[question.hash];
      waiting.push_back(std::move(done));
      if (waiting.size() == 1) queue_.push_back(std::move(question));
      return;
    }
  }
  done(std::move(answer));
}

void JudgeQueue::Close() {
  std::deque<Question> dropped;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    dropped.swap(queue_);
  }
  for (const Question& question : dropped) Answer(question.hash, Cancelled());
}

void JudgeQueue::Work() {
  while (true) {
    Question question;
    {
      absl::MutexLock lock(&mutex_);
      auto ready = [this] {
        mutex_.AssertHeld();
        return closed_ || !queue_.empty();
      };
      mutex_.Await(absl::Condition(&ready));
      if (queue_.empty()) return;
      question = std::move(queue_.front());
      queue_.pop_front();
      ++asked_;
    }
    Answer(question.hash, judge_->Ask(question.reference, question.candidate));
  }
}

void JudgeQueue::Answer(const std::string& hash, const absl::StatusOr<JudgeOpinion>& opinion) {
  std::vector<Done> waiting;
  {
    absl::MutexLock lock(&mutex_);
    if (opinion.ok()) {
      known_[hash] = *opinion;
      const absl::Status kept = Keep(hash, *opinion);
      if (!kept.ok() && file_status_.ok()) file_status_ = kept;
    }
    const auto found = waiting_.find(hash);
    if (found != waiting_.end()) {
      waiting = std::move(found->second);
      waiting_.erase(found);
    }
    NoteHealth(opinion.status(), static_cast<int>(waiting.size()));
  }
  for (Done& done : waiting) done(opinion);
}

void JudgeQueue::NoteHealth(const absl::Status& asked, int candidates) {
  if (absl::IsCancelled(asked)) return;
  failures_in_a_row_ = asked.ok() ? 0 : failures_in_a_row_ + candidates;
  if (asked.ok()) {
    health_ = absl::OkStatus();
  } else if (EndsAllRequests(asked)) {
    health_ = asked;
  } else if (failures_in_a_row_ >= kMostFailuresInARow) {
    health_ =
        AddContext(asked, absl::StrCat(failures_in_a_row_, " candidates in a row were not judged"));
  }
}

absl::Status JudgeQueue::Keep(const std::string& hash, const JudgeOpinion& opinion) {
  if (journal_ == nullptr) return absl::OkStatus();
  const Json json = {{"hash", hash},
                     {"judge", judge_->name()},
                     {"cheating", opinion.cheating},
                     {"rule", opinion.rule},
                     {"reason", opinion.reason}};
  return journal_->Append(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

absl::Status JudgeQueue::FileStatus() const {
  absl::MutexLock lock(&mutex_);
  return file_status_;
}

absl::Status JudgeQueue::Health() const {
  absl::MutexLock lock(&mutex_);
  return health_;
}

int64_t JudgeQueue::asked() const {
  absl::MutexLock lock(&mutex_);
  return asked_;
}

}  // namespace tritonrl
