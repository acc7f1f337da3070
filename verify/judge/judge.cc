#include "verify/judge/judge.h"

#include <curl/curl.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

namespace {

using Json = nlohmann::json;

constexpr size_t kMaxReply = 4 << 20;

// curl_global_init must be called once per process, before other calls.
void InitCurlOnce() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

size_t Collect(char* data, size_t size, size_t count, void* to) {
  auto* text = static_cast<std::string*>(to);
  if (text->size() + size * count > kMaxReply) return 0;  // ends the transfer with an error
  text->append(data, size * count);
  return size * count;
}

struct Reply {
  long status = 0;
  std::string body;
};

// Sends one POST request. Unavailable if there is no answer in time.
absl::StatusOr<Reply> Post(const std::string& url, const std::string& key, const std::string& body,
                           absl::Duration timeout) {
  InitCurlOnce();
  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(), &curl_easy_cleanup);
  if (curl == nullptr) return absl::UnavailableError("libcurl gives no handle");
  curl_slist* list = curl_slist_append(nullptr, "Content-Type: application/json");
  if (!key.empty())
    list = curl_slist_append(list, absl::StrCat("Authorization: Bearer ", key).c_str());
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers(list, &curl_slist_free_all);
  Reply reply;
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, body.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS,
                   static_cast<long>(absl::ToInt64Milliseconds(timeout)));
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &Collect);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &reply.body);
  const CURLcode code = curl_easy_perform(curl.get());
  if (code != CURLE_OK) return absl::UnavailableError(curl_easy_strerror(code));
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &reply.status);
  return reply;
}

// Returns the message text of a chat completion.
absl::StatusOr<std::string> Content(const std::string& body) {
  const Json json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object())
    return absl::UnavailableError("the reply is not JSON");
  const auto choices = json.find("choices");
  if (choices == json.end() || !choices->is_array() || choices->empty()) {
    return absl::UnavailableError("the reply has no choices");
  }
  const Json& choice = (*choices)[0];
  if (!choice.is_object() || !choice.contains("message") || !choice["message"].is_object() ||
      !choice["message"].contains("content") || !choice["message"]["content"].is_string()) {
    return absl::UnavailableError("the reply has no message content");
  }
  return choice["message"]["content"].get<std::string>();
}

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
  HttpJudge(HttpJudgeOptions options, std::string prompt)
      : options_(std::move(options)), prompt_(std::move(prompt)) {
    const char* key = options_.api_key_variable.empty()
                          ? nullptr
                          : std::getenv(options_.api_key_variable.c_str());
    if (key != nullptr) key_ = key;
    name_ = absl::StrCat(options_.model, " ", Sha256Hex(prompt_).substr(0, 12));
  }

  std::string name() const override { return name_; }

  absl::StatusOr<JudgeOpinion> Ask(const std::string& reference,
                                   const std::string& candidate) override {
    const Json request = {
        {"model", options_.model},
        {"temperature", 0},
        {"max_tokens", options_.max_tokens},
        {"messages", {{{"role", "user"}, {"content", Fill(prompt_, reference, candidate)}}}}};
    // By default dump() throws on invalid UTF-8.
    const std::string body = request.dump(-1, ' ', false, Json::error_handler_t::replace);
    absl::Status last = absl::UnavailableError("no attempt was made");
    absl::Duration pause = options_.first_pause;
    for (int attempt = 0; attempt < options_.attempts; ++attempt) {
      if (attempt > 0) {
        absl::SleepFor(pause);
        pause *= 2;
      }
      absl::StatusOr<JudgeOpinion> opinion = Once(body);
      if (opinion.ok()) return opinion;
      last = opinion.status();
    }
    return absl::UnavailableError(absl::StrCat("the judge ", options_.model, " at ", options_.url,
                                               " gave no usable answer in ", options_.attempts,
                                               " attempts: ", Message(last)));
  }

 private:
  absl::StatusOr<JudgeOpinion> Once(const std::string& body) {
    ASSIGN_OR_RETURN(Reply reply, Post(options_.url, key_, body, options_.timeout));
    if (reply.status != 200)
      return absl::UnavailableError(absl::StrCat("HTTP status ", reply.status));
    ASSIGN_OR_RETURN(std::string content, Content(reply.body));
    return ParseJudgeAnswer(content);
  }

  const HttpJudgeOptions options_;
  const std::string prompt_;
  std::string key_;
  std::string name_;
};

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
  return std::make_unique<HttpJudge>(options, std::move(prompt));
}

namespace {

using Json = nlohmann::json;

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
  }
  for (Done& done : waiting) done(opinion);
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

int64_t JudgeQueue::asked() const {
  absl::MutexLock lock(&mutex_);
  return asked_;
}

}  // namespace tritonrl
