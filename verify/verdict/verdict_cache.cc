#include "verify/verdict/verdict_cache.h"

#include <google/protobuf/util/json_util.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tritonrl {

namespace {

absl::StatusOr<std::string> ToLine(const Verdict& verdict) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string line;
  const auto status = google::protobuf::util::MessageToJsonString(verdict, &line, options);
  if (!status.ok()) return absl::InternalError("a verdict cannot be written as JSON");
  return line + "\n";
}

bool FromLine(const std::string& line, Verdict* verdict) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;  // written by a later version
  return google::protobuf::util::JsonStringToMessage(line, verdict, options).ok() &&
         !verdict->content_hash().empty();
}

}  // namespace

absl::StatusOr<int64_t> VerdictCache::Open() {
  if (journal_.empty() || !FileExists(journal_)) return 0;
  ASSIGN_OR_RETURN(std::string text, ReadFile(journal_));
  absl::MutexLock lock(&mutex_);
  int64_t read = 0;
  int line_number = 0;
  size_t start = 0;
  while (start < text.size()) {
    const size_t end = text.find('\n', start);
    const bool torn = end == std::string::npos;
    ++line_number;
    auto verdict = std::make_shared<Verdict>();
    if (torn || !FromLine(text.substr(start, end - start), verdict.get())) {
      if (torn || end + 1 == text.size()) {
        RETURN_IF_ERROR(WriteFileAtomic(journal_, text.substr(0, start)));
        break;
      }
      return absl::DataLossError(absl::StrCat("verdict journal ", journal_, ", line ", line_number,
                                              " is not a verdict; remove the line or the file"));
    }
    verdicts_[verdict->content_hash()] = std::move(verdict);
    ++read;
    start = end + 1;
  }
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
  if (!verdicts_.emplace(stored->content_hash(), stored).second || journal_.empty())
    return absl::OkStatus();
  ASSIGN_OR_RETURN(std::string line, ToLine(*stored));
  // Under the lock, so that lines do not mix.
  return AppendToFile(journal_, line);
}

}  // namespace tritonrl
