#include "verify/verdict/verdict_cache.h"

#include <google/protobuf/util/json_util.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl {

namespace {

absl::StatusOr<std::string> ToLine(const Verdict& verdict) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string line;
  const auto status = google::protobuf::util::MessageToJsonString(verdict, &line, options);
  if (!status.ok()) return absl::InternalError("a verdict cannot be written as JSON");
  return line;
}

bool FromLine(const std::string& line, Verdict* verdict) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;  // written by a later version
  return google::protobuf::util::JsonStringToMessage(line, verdict, options).ok() &&
         !verdict->content_hash().empty();
}

}  // namespace

absl::StatusOr<int64_t> VerdictCache::Open() {
  if (path_.empty()) return 0;
  absl::MutexLock lock(&mutex_);
  int64_t read = 0;
  const auto keep = [&](const Line& line) -> absl::StatusOr<bool> {
    mutex_.AssertHeld();
    auto verdict = std::make_shared<Verdict>();
    if (!FromLine(line.text, verdict.get())) {
      return absl::DataLossError(absl::StrCat("verdict journal ", path_, ", line ", line.number,
                                              " is not a verdict; remove the line or the file"));
    }
    verdicts_[verdict->content_hash()] = std::move(verdict);
    ++read;
    return true;
  };
  ASSIGN_OR_RETURN(journal_, JsonlJournal::Open(path_, JsonlJournal::kMaxLineBytes, keep,
                                                JsonlJournal::Lock::kNone));
  return read;
}

std::optional<Verdict> VerdictCache::Find(const std::string& content_hash) const {
  std::shared_ptr<const Verdict> found;
  {
    absl::MutexLock lock(&mutex_);
    auto it = verdicts_.find(content_hash);
    if (it == verdicts_.end()) return std::nullopt;
    found = it->second;
  }
  Verdict verdict = *found;
  verdict.set_from_cache(true);
  return verdict;
}

absl::Status VerdictCache::Add(const Verdict& verdict) {
  auto stored = std::make_shared<Verdict>(verdict);
  stored->clear_key();
  stored->clear_from_cache();
  absl::MutexLock lock(&mutex_);
  if (!verdicts_.emplace(stored->content_hash(), stored).second || journal_ == nullptr)
    return absl::OkStatus();
  ASSIGN_OR_RETURN(std::string line, ToLine(*stored));
  return journal_->Append(line);
}

}  // namespace tritonrl
