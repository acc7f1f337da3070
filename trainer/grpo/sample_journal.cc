#include "trainer/grpo/sample_journal.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kLineBytes = 512;      // of a line without its tokens
constexpr int64_t kTokenBytes = 8;       // of a token's id with its comma
constexpr int64_t kVerdictBytes = 8192;  // messages of verdicts are cut off

int64_t MostBytes(int max_tokens) { return kLineBytes + kTokenBytes * max_tokens; }

// False if `line` is no sample.
bool Parse(const std::string& line, std::string* key, std::string* run, Sample* sample) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return false;
  // Parsed text may have any types; get() throws for a wrong one.
  try {
    *key = json.at("key").get<std::string>();
    *run = json.at("run").get<std::string>();
    sample->tokens = json.at("tokens").get<std::vector<int32_t>>();
    const std::string reason = json.at("finish_reason").get<std::string>();
    for (const FinishReason each : {FinishReason::kStop, FinishReason::kLength}) {
      if (reason != FinishReasonName(each)) continue;
      sample->finish_reason = each;
      return true;
    }
  } catch (const Json::exception&) {
  }
  return false;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SampleJournal>> SampleJournal::Open(const std::string& path,
                                                                   const std::string& run,
                                                                   const std::string& verdicts) {
  std::unique_ptr<SampleJournal> journal(new SampleJournal(run, verdicts));
  const auto keep = [&](const Line& line) -> absl::StatusOr<bool> {
    std::string key, of_run;
    Sample sample;
    if (!Parse(line.text, &key, &of_run, &sample)) {
      return absl::DataLossError(
          absl::StrCat(path, ", line ", line.number, " is no sample; remove the line"));
    }
    if (of_run == run) journal->samples_[key] = std::move(sample);
    return true;
  };
  ASSIGN_OR_RETURN(journal->file_, JsonlJournal::Open(path, JsonlJournal::kMaxLineBytes, keep));
  return journal;
}

const Sample* SampleJournal::Find(const std::string& key) const {
  const auto found = samples_.find(key);
  return found == samples_.end() ? nullptr : &found->second;
}

absl::Status SampleJournal::Reserve(int samples, int max_tokens, int unverified) {
  const int64_t bytes = samples * MostBytes(max_tokens);
  RETURN_IF_ERROR(file_->Reserve(reserved_ + bytes));
  if (has_verdicts_) {
    RETURN_IF_ERROR(verdict_room_.Reserve((int64_t{unverified} + samples) * kVerdictBytes));
  }
  reserved_ += bytes;
  return absl::OkStatus();
}

absl::Status SampleJournal::Add(const std::string& key, const Sample& sample, int max_tokens) {
  reserved_ = std::max<int64_t>(0, reserved_ - MostBytes(max_tokens));
  const Json json = {{"key", key},
                     {"run", run_},
                     {"finish_reason", FinishReasonName(sample.finish_reason)},
                     {"tokens", sample.tokens}};
  return file_->Append(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace tritonrl
