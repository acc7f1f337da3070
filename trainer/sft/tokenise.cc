#include "trainer/sft/tokenise.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/progress.h"
#include "base/records/record_reader.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "base/version.h"
#include "trainer/sft/sft_example.h"

namespace tritonrl {
namespace {

// Records are parsed and tokenised in groups of about this size, on all threads.
constexpr int64_t kGroupBytes = 8 << 20;
constexpr int64_t kMegabyte = 1'000'000;
// Smaller data is tokenised in a second or two, without a progress line.
constexpr int64_t kProgressBytes = 10 * kMegabyte;

// One record on its way.
struct Slot {
  Record record;
  absl::StatusOr<EncodedExample> encoded = EncodedExample();
};

bool IsFaultOfExample(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status);
}

class Tokeniser {
 public:
  Tokeniser(const TokeniseOptions& options, const ExampleEncoder& encoder, TokenCacheWriter* writer)
      : options_(options), encoder_(encoder), writer_(*writer) {}

  absl::Status Run();

 private:
  bool Enough() const { return options_.limit > 0 && read_ >= options_.limit; }
  absl::Status ReadFile(const std::string& path);
  absl::StatusOr<std::vector<Slot>> ReadGroup(RecordReader* reader);
  absl::Status DetectFormat(const std::vector<Slot>& group, const RecordReader& reader);
  // InvalidArgument also if the model does not know one of the tokens.
  absl::StatusOr<EncodedExample> EncodeForModel(const SftExample& example) const;
  absl::Status Encode(std::vector<Slot>* group, const RecordReader& reader);
  void NoteBad(const RecordReader& reader, const Record& record, const absl::Status& status);
  void Tick(const RecordReader& reader);

  const TokeniseOptions& options_;
  const ExampleEncoder& encoder_;
  TokenCacheWriter& writer_;
  std::optional<SftFormat> format_;  // of the current file
  int64_t read_ = 0;                 // records
  absl::Status first_bad_;
  int64_t bad_ = 0;
  int64_t bytes_before_ = 0;  // of the files that are read
  absl::Time start_ = absl::Now();
  std::unique_ptr<Progress> progress_;
};

absl::StatusOr<std::vector<Slot>> Tokeniser::ReadGroup(RecordReader* reader) {
  std::vector<Slot> group;
  int64_t bytes = 0;
  while (bytes < kGroupBytes && !Enough()) {
    ASSIGN_OR_RETURN(std::optional<Record> record, reader->Next());
    if (!record.has_value()) break;
    bytes += static_cast<int64_t>(record->text.size()) + 1;
    group.push_back({.record = *std::move(record)});
    ++read_;
  }
  return group;
}

// The first record that is a JSON object decides. A record that fits no form is noted as bad.
absl::Status Tokeniser::DetectFormat(const std::vector<Slot>& group, const RecordReader& reader) {
  for (const Slot& slot : group) {
    const absl::StatusOr<std::optional<SftFormat>> found = DetectSftFormat(slot.record.text);
    if (!found.ok()) return AddContext(found.status(), reader.Where(slot.record));
    format_ = *found;
    if (format_.has_value()) return absl::OkStatus();
  }
  return absl::OkStatus();
}

void Tokeniser::NoteBad(const RecordReader& reader, const Record& record,
                        const absl::Status& status) {
  if (++bad_ == 1) first_bad_ = AddContext(status, reader.Where(record));
}

absl::StatusOr<EncodedExample> Tokeniser::EncodeForModel(const SftExample& example) const {
  ASSIGN_OR_RETURN(EncodedExample encoded, encoder_.Encode(example));
  if (options_.vocab_size == 0) return encoded;
  for (const int32_t token : encoded.tokens) {
    if (token < options_.vocab_size) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the text has the token ", token,
                     " of tokenizer.json, for which the model has no row (vocab_size is ",
                     options_.vocab_size, "); remove its text from the example"));
  }
  return encoded;
}

absl::Status Tokeniser::Encode(std::vector<Slot>* group, const RecordReader& reader) {
  // After a bad example nothing is kept; the others are parsed to count the bad ones.
  const bool parse_only = bad_ > 0;
  RETURN_IF_ERROR(ParallelFor(
      options_.threads, static_cast<int64_t>(group->size()), [&](int, int64_t i) -> absl::Status {
        Slot& slot = (*group)[i];
        const absl::StatusOr<SftExample> example =
            ParseSftExample(slot.record.text, format_.value_or(SftFormat::kPromptResponse));
        if (!example.ok()) {
          slot.encoded = example.status();
        } else if (!parse_only) {
          slot.encoded = EncodeForModel(*example);
          if (!slot.encoded.ok() && !IsFaultOfExample(slot.encoded.status())) {
            return AddContext(slot.encoded.status(), reader.Where(slot.record));
          }
        }
        return absl::OkStatus();
      }));
  for (const Slot& slot : *group) {
    if (!slot.encoded.ok()) NoteBad(reader, slot.record, slot.encoded.status());
    if (bad_ > 0) continue;
    RETURN_IF_ERROR(writer_.Append(*slot.encoded, static_cast<int64_t>(slot.record.text.size())));
  }
  return absl::OkStatus();
}

void Tokeniser::Tick(const RecordReader& reader) {
  if (progress_ == nullptr) return;
  const double seconds = std::max(1e-9, absl::ToDoubleSeconds(absl::Now() - start_));
  progress_->Tick((bytes_before_ + reader.consumed()) / kMegabyte,
                  absl::StrFormat("MB, %.2fM tokens/s",
                                  static_cast<double>(writer_.total_tokens()) / seconds / 1e6));
}

absl::Status Tokeniser::ReadFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<RecordReader> reader,
                   RecordReader::Open(path, SftFields()));
  format_.reset();
  const int64_t before = read_;
  while (!Enough()) {
    ASSIGN_OR_RETURN(std::vector<Slot> group, ReadGroup(reader.get()));
    if (group.empty()) break;
    if (!format_.has_value()) RETURN_IF_ERROR(DetectFormat(group, *reader));
    RETURN_IF_ERROR(Encode(&group, *reader));
    Tick(*reader);
  }
  bytes_before_ += reader->file_bytes();
  writer_.AddNote(absl::StrCat(path, ": ", read_ - before, " examples (",
                               format_.has_value() ? SftFormatName(*format_) : "no form known",
                               ", ", reader->Describe(), ")"));
  return absl::OkStatus();
}

absl::Status Tokeniser::Run() {
  int64_t total_bytes = 0;
  for (const std::string& path : options_.paths) {
    total_bytes += FileSize(path).value_or(0);  // ReadFile reports an error
  }
  if (options_.show_progress && total_bytes >= kProgressBytes) {
    progress_ = std::make_unique<Progress>(ProgressOptions{
        .label = "tokenise", .total = std::max<int64_t>(1, total_bytes / kMegabyte)});
  }
  for (const std::string& path : options_.paths) {
    const absl::Status status = ReadFile(path);
    // An earlier bad example is the more likely cause.
    if (!status.ok()) return bad_ > 0 ? first_bad_ : status;
  }
  if (bad_ > 0) {
    return absl::Status(
        first_bad_.code(),
        absl::StrCat(first_bad_.message(),
                     bad_ > 1 ? absl::StrCat("; ", bad_ - 1, " more bad examples follow") : ""));
  }
  if (read_ == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no example in ", absl::StrJoin(options_.paths, ", ")));
  }
  return absl::OkStatus();
}

void Say(const TokeniseOptions& options, const std::string& text) {
  if (options.say != nullptr) options.say(text);
}

}  // namespace

absl::StatusOr<std::string> TokenCacheKey(const TokeniseOptions& options,
                                          const ExampleEncoder& encoder) {
  std::string text =
      absl::StrCat("tokens of TritonRL ", kVersion, "\n", encoder.CacheKey(), "\nlimit ",
                   options.limit, ", ids below ", options.vocab_size, "\n");
  for (const std::string& path : options.paths) {
    struct stat info;
    if (stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, "open", path);
    absl::StrAppend(&text, path, " ", info.st_size, " ", info.st_mtim.tv_sec, ".",
                    info.st_mtim.tv_nsec, "\n");
  }
  return Sha256Hex(text);
}

absl::StatusOr<std::unique_ptr<TokenCache>> TokeniseOnce(const TokeniseOptions& options,
                                                         const std::string& key,
                                                         const ExampleEncoder& encoder) {
  absl::StatusOr<std::unique_ptr<TokenCache>> kept =
      TokenCache::Open(options.cache, key, std::max(1, options.threads));
  if (kept.ok()) {
    for (const std::string& note : (*kept)->notes()) Say(options, note);
    Say(options,
        absl::StrCat((*kept)->total_tokens(), " tokens of an earlier start: ", options.cache));
    return kept;
  }
  if (!absl::IsNotFound(kept.status())) {
    Say(options, absl::StrCat("the token cache ", options.cache, " is not used, because ",
                              kept.status().message(), "; it is made again"));
  }
  RETURN_IF_ERROR(CreateDirectories(DirName(options.cache)));
  const absl::Time start = absl::Now();
  RETURN_IF_ERROR(WriteTokenCache(options.cache, key, [&](TokenCacheWriter* writer) {
    return Tokeniser(options, encoder, writer).Run();
  }));
  const double seconds = std::max(1e-9, absl::ToDoubleSeconds(absl::Now() - start));
  ASSIGN_OR_RETURN(std::unique_ptr<TokenCache> made, TokenCache::Open(options.cache, key, 0));
  for (const std::string& note : made->notes()) Say(options, note);
  const double tokens = static_cast<double>(made->total_tokens());
  Say(options,
      absl::StrFormat("%d tokens in %.1f s (%.2fM tokens/s), kept in %s", made->total_tokens(),
                      seconds, tokens / seconds / 1e6, options.cache));
  return made;
}

}  // namespace tritonrl
