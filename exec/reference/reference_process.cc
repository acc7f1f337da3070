#include "exec/reference/reference_process.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"

namespace tritonrl {

namespace {

using Json = nlohmann::json;

constexpr uint64_t kJobBufferBytes = 64 << 20;
constexpr absl::Duration kEndGrace = absl::Seconds(5);  // for freeing memory, before a kill
constexpr absl::Duration kMinAnswerTimeout = absl::Seconds(5);
constexpr absl::Duration kDropLimit = absl::Seconds(20);  // the driver frees gigabytes slowly

absl::Status WriteAll(int fd, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = pwrite(fd, text.data() + done, text.size() - done, done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return ErrnoStatus(errno, "write", "a job for a reference's process");
    done += n;
  }
  return absl::OkStatus();
}

void CloseAll(std::vector<int>* fds) {
  for (const int fd : *fds) close(fd);
  fds->clear();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ReferenceProcess>> ReferenceProcess::Create(WorkerPool* pool) {
  ASSIGN_OR_RETURN(SharedMemory job_buffer, SharedMemory::Create("result", kJobBufferBytes));
  RETURN_IF_ERROR(job_buffer.Map(kJobBufferBytes).status());
  return std::unique_ptr<ReferenceProcess>(new ReferenceProcess(pool, std::move(job_buffer)));
}

ReferenceProcess::~ReferenceProcess() {
  absl::MutexLock lock(&mutex_);
  if (job_ == nullptr) return;
  job_->Send(Json{{"end", true}}.dump());
  bool passed = false;
  const absl::Time limit = absl::Now() + kEndGrace;
  while (job_->NextUntil(limit, nullptr, &passed).has_value()) continue;
  if (passed) job_->Cancel();
}

JobReport ReferenceProcess::Lose(const std::string& why, bool kill) {
  if (kill) job_->Cancel();
  JobReport report = job_->Finish();
  job_ = nullptr;
  serving_ = false;
  lost_ = absl::StrCat(why, report.detail.empty() ? "" : ": ", report.detail,
                       report.output.empty() ? "" : ": ", report.output.substr(0, 300));
  return report;
}

bool ReferenceProcess::ReadMade(const std::string& message, JobReport* report) {
  const Json json = Json::parse(message, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.size() != 1) return false;
  const auto member = json.begin();
  if ((member.key() != "made" && member.key() != "failed") || !member->is_number_unsigned()) {
    return false;
  }
  const uint64_t bytes = member->get<uint64_t>();
  if (bytes > kJobBufferBytes) return false;
  serving_ = member.key() == "made";
  const absl::string_view text = job_buffer_.view().substr(0, bytes);
  report->end = JobEnd::kExit;
  report->exit_code = 0;
  report->channel = "{\"result\":";
  report->channel.append(text.data(), text.size()).append("}\n");
  return true;
}

JobReport ReferenceProcess::Make(const std::string& job_json, const ExecLimits& limits,
                                 absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  const absl::Time begin = absl::Now();
  const absl::Time limit = begin + absl::Seconds(limits.wall_seconds());
  JobReport report;
  const absl::Status given = job_ == nullptr ? Begin(job_json, limits, deadline) : Give(job_json);
  if (!given.ok()) {
    report.detail = Message(given);
  } else {
    bool passed = false;
    const auto message = job_->NextUntil(std::min(limit, deadline), nullptr, &passed);
    if (!message.has_value() || !ReadMade(*message, &report)) {
      report = Lose("the reference's process made nothing", passed || message.has_value());
    }
  }
  // A kill at either limit reports kDeadline.
  if (report.end == JobEnd::kDeadline && limit <= deadline) report.end = JobEnd::kTimeout;
  report.wall_seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  return report;
}

absl::Status ReferenceProcess::Begin(const std::string& job_json, const ExecLimits& limits,
                                     absl::Time deadline) {
  ASSIGN_OR_RETURN(job_, JobDialogue::Start(pool_, job_json, limits, deadline,
                                            {{"result", job_buffer_.fd()}}, {.serves = true}));
  return absl::OkStatus();
}

absl::Status ReferenceProcess::Give(const std::string& job_json) {
  RETURN_IF_ERROR(WriteAll(job_buffer_.fd(), job_json));
  job_->Send(Json{{"task", job_json.size()}}.dump());
  return absl::OkStatus();
}

bool ReferenceProcess::Drop() {
  const absl::StatusOr<Json> fit =
      Ask({{"drop", true}}, "dropped", {.deadline = absl::Now() + kDropLimit});
  serving_ = false;
  return fit.ok() && *fit == true;
}

absl::StatusOr<Json> ReferenceProcess::Ask(const Json& order, const char* answer,
                                           const AskOptions& options) {
  {
    const WaitedTime::Span span(options.queued);
    absl::MutexLock turn(&turn_mutex_);
    const auto free = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !asking_; };
    const bool mine = turn_mutex_.AwaitWithDeadline(absl::Condition(&free), options.deadline);
    if (!mine || absl::Now() >= options.deadline) {
      return absl::DeadlineExceededError(
          "the reference's process was busy with others until too late");
    }
    asking_ = true;
  }
  absl::StatusOr<Json> value = AskNow(order, answer, options);
  absl::MutexLock turn(&turn_mutex_);
  asking_ = false;
  return value;
}

absl::StatusOr<Json> ReferenceProcess::AskNow(const Json& order, const char* answer,
                                              const AskOptions& options) {
  absl::MutexLock lock(&mutex_);
  if (job_ == nullptr) return absl::UnavailableError(lost_);
  const absl::Time now = absl::Now();
  job_->Send(order.dump());
  bool passed = false;
  std::vector<int> received;
  // At least kMinAnswerTimeout: all candidates of the task use the process, and one with little
  // time left must not get it killed.
  const absl::Time limit =
      std::max(std::min(options.deadline, now + options.answer_timeout), now + kMinAnswerTimeout);
  const auto message = job_->NextUntil(limit, &received, &passed);
  if (!message.has_value()) {
    const std::string name = order.begin().key();
    (void)Lose(absl::StrCat("the reference's process ",
                            passed ? "did not answer in time to \"" : "ended at \"", name, "\""),
               passed);
    return absl::UnavailableError(lost_);
  }
  Json json = Json::parse(*message, nullptr, /*allow_exceptions=*/false);
  const bool whole = json.is_object() && json.contains(answer);
  if (options.fds != nullptr && whole) {
    options.fds->insert(options.fds->end(), received.begin(), received.end());
  } else {
    CloseAll(&received);
  }
  if (whole) return std::move(json[answer]);
  if (json.is_object() && json.contains("error") && json["error"].is_string()) {
    const std::string text = json["error"].get<std::string>();
    if (json.value("out_of_memory", false)) return absl::ResourceExhaustedError(text);
    return absl::InternalError(absl::StrCat("the reference's process: ", text));
  }
  return absl::InternalError("the reference's process gave an answer that makes no sense");
}

absl::StatusOr<nlohmann::json> ReferenceSession::Ask(const nlohmann::json& order,
                                                     const char* answer,
                                                     const AskOptions& options) {
  absl::StatusOr<nlohmann::json> value = process_->Ask(order, answer, options);
  if (!process_->serving() && counted_.exchange(false)) pool_->CountEnded();
  return value;
}

ReferenceSession::~ReferenceSession() {
  if (process_->Drop()) {
    pool_->GiveBack(std::move(process_));
  } else if (counted_) {
    pool_->End(std::move(process_));
  }
}

std::unique_ptr<ReferenceProcess> ReferenceProcessPool::Take(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  const int most = std::max(1, pool_->workers() - 1);
  const auto ready = [this, most]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return !idle_.empty() || processes_ < most;
  };
  (void)mutex_.AwaitWithDeadline(absl::Condition(&ready),
                                 std::min(deadline, absl::Now() + max_wait_));
  if (idle_.empty()) {
    ++processes_;
    return nullptr;
  }
  std::unique_ptr<ReferenceProcess> process = std::move(idle_.back());
  idle_.pop_back();
  return process;
}

void ReferenceProcessPool::GiveBack(std::unique_ptr<ReferenceProcess> process) {
  absl::MutexLock lock(&mutex_);
  idle_.push_back(std::move(process));
}

void ReferenceProcessPool::CountEnded() {
  absl::MutexLock lock(&mutex_);
  --processes_;
}

void ReferenceProcessPool::EndIdle() {
  std::vector<std::unique_ptr<ReferenceProcess>> ending;
  {
    absl::MutexLock lock(&mutex_);
    ending.swap(idle_);
  }
  for (std::unique_ptr<ReferenceProcess>& process : ending) End(std::move(process));
}

void ReferenceProcessPool::End(std::unique_ptr<ReferenceProcess> process) {
  process = nullptr;  // without the lock, as the end takes up to kEndGrace
  CountEnded();
}

JobReport ReferenceProcessPool::Make(const std::string& job_json, const ExecLimits& limits,
                                     absl::Time deadline,
                                     std::shared_ptr<ReferenceSession>* session) {
  JobReport report;
  std::unique_ptr<ReferenceProcess> process = Take(deadline);
  if (process != nullptr) {
    report = process->Make(job_json, limits, deadline);
    if (!process->serving()) process = nullptr;  // the count goes on to the new one
  }
  if (process == nullptr && absl::Now() < deadline) {
    absl::StatusOr<std::unique_ptr<ReferenceProcess>> fresh = ReferenceProcess::Create(pool_);
    if (fresh.ok()) {
      process = *std::move(fresh);
      report = process->Make(job_json, limits, deadline);
      if (!process->serving()) process = nullptr;
    } else {
      report.detail = Message(fresh.status());
    }
  }
  if (process == nullptr) {
    CountEnded();
    return report;
  }
  *session = std::make_shared<ReferenceSession>(shared_from_this(), std::move(process));
  return report;
}

}  // namespace tritonrl
