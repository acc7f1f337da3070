#include "exec/reference_host.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kResultBytes = 64 << 20;
constexpr absl::Duration kEndGrace = absl::Seconds(5);  // to give memory back before it is killed

// The length of what was made, from the first message; nothing if it is not one.
std::optional<uint64_t> MadeBytes(const std::string& message) {
  const Json json = Json::parse(message, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("made") || !json["made"].is_number_unsigned()) {
    return std::nullopt;
  }
  const uint64_t bytes = json["made"].get<uint64_t>();
  return bytes <= kResultBytes ? std::optional(bytes) : std::nullopt;
}

void CloseAll(std::vector<int>* fds) {
  for (const int fd : *fds) close(fd);
  fds->clear();
}

}  // namespace

absl::StatusOr<ReferenceHost::Started> ReferenceHost::Start(const std::string& job_json,
                                                            WorkerPool* pool,
                                                            const ExecLimits& limits,
                                                            absl::Time deadline) {
  ASSIGN_OR_RETURN(SharedMemory result, SharedMemory::Create("result", kResultBytes));
  ASSIGN_OR_RETURN(auto job, JobDialogue::Start(pool, job_json, limits, deadline,
                                                {{"result", result.fd()}}, /*serves=*/true));
  Started started;
  const absl::Time begin = absl::Now();
  const absl::Time limit = begin + absl::Seconds(limits.wall_seconds());
  bool passed = false;
  const auto message = job->NextUntil(std::min(limit, deadline), nullptr, &passed);
  if (passed) job->Cancel();
  const std::optional<uint64_t> bytes = message.has_value() ? MadeBytes(*message) : std::nullopt;
  if (!bytes.has_value()) {
    if (message.has_value()) job->Cancel();
    started.report = job->Finish();
    if (passed && limit <= deadline) started.report.end = JobEnd::kTimeout;
    return started;
  }
  ASSIGN_OR_RETURN(const absl::string_view text, result.Map(*bytes));
  started.report.end = JobEnd::kExit;
  started.report.exit_code = 0;
  started.report.wall_seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  started.report.channel = absl::StrCat("{\"result\":", text.empty() ? "null" : "");
  started.report.channel.append(text.data(), text.size()).append("}\n");
  started.host.reset(new ReferenceHost(std::move(result), std::move(job)));
  return started;
}

ReferenceHost::~ReferenceHost() {
  absl::MutexLock lock(&mutex_);
  if (job_ == nullptr) return;
  job_->Send(Json{{"end", true}}.dump());
  bool passed = false;
  while (job_->NextUntil(absl::Now() + kEndGrace, nullptr, &passed).has_value()) continue;
  if (passed) job_->Cancel();
}

bool ReferenceHost::alive() const {
  absl::MutexLock lock(&mutex_);
  return job_ != nullptr;
}

absl::StatusOr<Json> ReferenceHost::Ask(const Json& order, const char* answer, absl::Time deadline,
                                        std::vector<int>* fds) {
  absl::MutexLock lock(&mutex_);
  if (job_ == nullptr) return absl::UnavailableError(lost_);
  job_->Send(order.dump());
  bool passed = false;
  std::vector<int> received;
  const auto message = job_->NextUntil(deadline, &received, &passed);
  if (!message.has_value()) {
    const std::string name = order.begin().key();
    if (passed) job_->Cancel();
    const JobReport report = job_->Finish();
    lost_ = passed ? absl::StrCat("the reference's process did not answer \"", name, "\" in time")
                   : absl::StrCat("the reference's process ended at \"", name,
                                  "\": ", report.detail, report.output.substr(0, 300));
    job_ = nullptr;
    return absl::UnavailableError(lost_);
  }
  Json json = Json::parse(*message, nullptr, /*allow_exceptions=*/false);
  const bool whole = json.is_object() && json.contains(answer);
  if (fds != nullptr && whole) {
    fds->insert(fds->end(), received.begin(), received.end());
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

}  // namespace tritonrl
