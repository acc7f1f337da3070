#include "verify/judge_queue.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/line_reader.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxLine = 4 << 20;  // a model's answer is no longer

// The opinion of a line and the hash it belongs to.
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
  RETURN_IF_ERROR(AppendToFile(file_, ""));  // a folder that cannot be written is found now
  ASSIGN_OR_RETURN(std::unique_ptr<LineReader> reader, LineReader::Open(file_, kMaxLine));
  absl::MutexLock lock(&mutex_);
  while (true) {
    ASSIGN_OR_RETURN(std::optional<Line> line, reader->Next());
    if (!line.has_value()) break;
    if (!line->complete) {
      std::error_code error;
      std::filesystem::resize_file(file_, static_cast<uintmax_t>(line->offset), error);
      if (error) {
        return absl::DataLossError(absl::StrCat(
            "the last line of ", file_, " is torn and cannot be cut off: ", error.message()));
      }
      break;
    }
    auto opinion = FromLine(line->text);
    if (!opinion.has_value()) {
      return absl::DataLossError(absl::StrCat("judge cache ", file_, ", line ", line->number,
                                              " is not an opinion; remove the line or the file"));
    }
    known_[opinion->first] = std::move(opinion->second);
  }
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
      // Under the lock, so that lines do not mix.
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
  if (file_.empty()) return absl::OkStatus();
  const Json json = {{"hash", hash},
                     {"judge", judge_->name()},
                     {"cheating", opinion.cheating},
                     {"rule", opinion.rule},
                     {"reason", opinion.reason}};
  return AppendToFile(file_, json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
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
