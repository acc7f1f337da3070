// The tokens of all examples of a data set, in one file that ranks and resumed runs map into
// memory.
#ifndef TRITONRL_TRAINER_SFT_TOKEN_CACHE_H_
#define TRITONRL_TRAINER_SFT_TOKEN_CACHE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "trainer/sft/example_encoder.h"

namespace tritonrl {

// One example of the file's index.
struct TokenCacheEntry {
  int64_t first_token = 0;
  int64_t first_span = 0;
  int32_t tokens = 0;
  int32_t spans = 0;
  int64_t bytes = 0;  // of the example's JSON text
};

// Random access to the examples. Immutable, thread-safe.
class TokenCache {
 public:
  // Maps the file `path`, which must have been written for `key`. NotFound: there is no file.
  // FailedPrecondition: it was written for another key. DataLoss: it is damaged, and how. The
  // tokens themselves, which may be gigabytes, are compared with their checksums on `threads`
  // threads, unless `threads` is 0.
  static absl::StatusOr<std::unique_ptr<TokenCache>> Open(const std::string& path,
                                                          const std::string& key, int threads);
  ~TokenCache();
  TokenCache(const TokenCache&) = delete;
  TokenCache& operator=(const TokenCache&) = delete;

  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  int64_t total_tokens() const { return static_cast<int64_t>(tokens_.size()); }
  // Bytes of the JSON text of example i, and its tokens.
  int64_t bytes(int64_t i) const { return entries_[i].bytes; }
  int64_t length(int64_t i) const { return entries_[i].tokens; }
  std::span<const int32_t> tokens(int64_t i) const {
    return tokens_.subspan(entries_[i].first_token, entries_[i].tokens);
  }
  // The tokens of example i that are taught.
  std::span<const TokenSpan> taught(int64_t i) const {
    return spans_.subspan(entries_[i].first_span, entries_[i].spans);
  }
  int64_t taught_tokens(int64_t i) const;
  // The lines about the data files that the writer kept.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  TokenCache() = default;
  absl::Status Map(const std::string& path);
  absl::Status ReadIndex(const std::string& key);
  absl::Status CheckTokens(int threads) const;

  const char* bytes_ = nullptr;  // the whole file
  int64_t mapped_bytes_ = 0;
  const char* checksums_ = nullptr;  // uint32_t, of each chunk of tokens
  std::span<const int32_t> tokens_;
  std::span<const TokenCacheEntry> entries_;
  std::span<const TokenSpan> spans_;
  std::vector<std::string> notes_;
};

// Collects the examples of a file that WriteTokenCache writes.
class TokenCacheWriter {
 public:
  TokenCacheWriter(int fd, std::string path);
  // Errors are those of writing the file.
  absl::Status Append(const EncodedExample& example, int64_t bytes);
  void AddNote(std::string note) { notes_.push_back(std::move(note)); }
  int64_t total_tokens() const { return tokens_; }
  int64_t size() const { return static_cast<int64_t>(entries_.size()); }

 private:
  friend absl::Status WriteTokenCache(const std::string&, const std::string&,
                                      absl::FunctionRef<absl::Status(TokenCacheWriter*)>);
  absl::Status Begin(const std::string& key);
  absl::Status FlushChunk();
  absl::Status Finish();

  const int fd_;
  const std::string path_;
  std::vector<int32_t> chunk_;  // tokens that are not written yet
  int64_t tokens_ = 0;
  std::vector<uint32_t> checksums_;  // CRC-32 of each chunk of tokens
  std::vector<TokenCacheEntry> entries_;
  std::vector<TokenSpan> spans_;
  std::vector<std::string> notes_;
  std::string head_;
};

// Replaces the file `path` by the examples that `fill` appends, atomically. `key` has 64
// characters.
absl::Status WriteTokenCache(const std::string& path, const std::string& key,
                             absl::FunctionRef<absl::Status(TokenCacheWriter*)> fill);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_SFT_TOKEN_CACHE_H_
