#include "trainer/sft/token_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"
#include "base/thread_pool.h"

// The file: the head (magic number and key), the tokens, zeros up to a multiple of 8 bytes, the
// index, the spans, the checksums of the chunks of tokens, the notes (lines), and the tail. Numbers
// are little-endian, as on every machine that the project supports.

namespace tritonrl {
namespace {

constexpr char kMagic[8] = {'S', 'F', 'T', 'T', 'O', 'K', '0', '1'};
constexpr size_t kKeyBytes = 64;
constexpr size_t kHeadBytes = sizeof(kMagic) + kKeyBytes;
constexpr int64_t kChunkTokens = 1 << 21;  // of one checksum

struct Tail {
  int64_t tokens = 0;
  int64_t entries = 0;
  int64_t spans = 0;
  int64_t notes_bytes = 0;
  uint32_t checksum = 0;  // of all bytes that are not tokens, with this field 0
  uint32_t unused = 0;
};

uint32_t Checksum(uint32_t begin, const void* data, size_t bytes) {
  return static_cast<uint32_t>(crc32_z(begin, static_cast<const unsigned char*>(data), bytes));
}

int64_t ChunksOf(int64_t tokens) { return (tokens + kChunkTokens - 1) / kChunkTokens; }

// Offsets of the parts in the file.
struct Layout {
  explicit Layout(const Tail& tail) {
    const auto align = [](int64_t offset) { return (offset + 7) / 8 * 8; };
    tokens_end = static_cast<int64_t>(kHeadBytes) + tail.tokens * 4;
    entries = align(tokens_end);
    spans = entries + tail.entries * static_cast<int64_t>(sizeof(TokenCacheEntry));
    checksums = spans + tail.spans * static_cast<int64_t>(sizeof(TokenSpan));
    notes = checksums + ChunksOf(tail.tokens) * 4;
    tail_begin = notes + tail.notes_bytes;
    end = tail_begin + static_cast<int64_t>(sizeof(Tail));
  }
  int64_t tokens_end, entries, spans, checksums, notes, tail_begin, end;
};

// Whether the counts are such that Layout cannot overflow.
bool IsSane(const Tail& tail, int64_t file_bytes) {
  for (const int64_t count : {tail.tokens, tail.entries, tail.spans, tail.notes_bytes}) {
    if (count < 0 || count > file_bytes) return false;
  }
  return true;
}

// Whether the entry's tokens and spans exist, and its spans are in order and within its tokens.
bool Fits(const TokenCacheEntry& entry, int64_t tokens, std::span<const TokenSpan> spans) {
  const auto within = [](int64_t first, int64_t count, int64_t size) {
    return first >= 0 && count >= 0 && first <= size && count <= size - first;
  };
  if (!within(entry.first_token, entry.tokens, tokens)) return false;
  if (!within(entry.first_span, entry.spans, static_cast<int64_t>(spans.size()))) return false;
  int32_t end = 0;
  for (const TokenSpan& span : spans.subspan(entry.first_span, entry.spans)) {
    if (span.begin < end || span.end < span.begin || span.end > entry.tokens) return false;
    end = span.end;
  }
  return true;
}

}  // namespace

int64_t TokenCache::taught_tokens(int64_t i) const {
  int64_t sum = 0;
  for (const TokenSpan& span : taught(i)) sum += span.end - span.begin;
  return sum;
}

TokenCache::~TokenCache() {
  if (bytes_ != nullptr) munmap(const_cast<char*>(bytes_), mapped_bytes_);
}

absl::StatusOr<std::unique_ptr<TokenCache>> TokenCache::Open(const std::string& path,
                                                             const std::string& key, int threads) {
  std::unique_ptr<TokenCache> cache(new TokenCache());
  RETURN_IF_ERROR(cache->Map(path));
  RETURN_IF_ERROR(cache->ReadIndex(key));
  if (threads > 0) RETURN_IF_ERROR(cache->CheckTokens(threads));
  return cache;
}

absl::Status TokenCache::Map(const std::string& path) {
  const ScopedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "read", path);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, "read", path);
  if (info.st_size < static_cast<int64_t>(kHeadBytes + sizeof(Tail))) {
    return absl::DataLossError("it is too short");
  }
  void* const mapping = mmap(nullptr, info.st_size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (mapping == MAP_FAILED) return ErrnoStatus(errno, "map", path);
  bytes_ = static_cast<const char*>(mapping);
  mapped_bytes_ = info.st_size;
  return absl::OkStatus();
}

absl::Status TokenCache::ReadIndex(const std::string& key) {
  if (std::memcmp(bytes_, kMagic, sizeof(kMagic)) != 0) {
    return absl::DataLossError("it does not begin like a token cache");
  }
  if (absl::string_view(bytes_ + sizeof(kMagic), kKeyBytes) != key) {
    return absl::FailedPreconditionError("it was made from other data, options or another model");
  }
  Tail tail;
  std::memcpy(&tail, bytes_ + mapped_bytes_ - sizeof(Tail), sizeof(Tail));
  if (!IsSane(tail, mapped_bytes_) || Layout(tail).end != mapped_bytes_) {
    return absl::DataLossError("it has not the size that it states");
  }
  const Layout at(tail);
  const uint32_t stated = std::exchange(tail.checksum, 0);
  uint32_t checksum = Checksum(0, bytes_, kHeadBytes);
  checksum = Checksum(checksum, bytes_ + at.tokens_end, at.tail_begin - at.tokens_end);
  if (Checksum(checksum, &tail, sizeof(Tail)) != stated) {
    return absl::DataLossError("the checksum of its index is wrong");
  }
  tokens_ = {reinterpret_cast<const int32_t*>(bytes_ + kHeadBytes),
             static_cast<size_t>(tail.tokens)};
  entries_ = {reinterpret_cast<const TokenCacheEntry*>(bytes_ + at.entries),
              static_cast<size_t>(tail.entries)};
  spans_ = {reinterpret_cast<const TokenSpan*>(bytes_ + at.spans), static_cast<size_t>(tail.spans)};
  for (const TokenCacheEntry& entry : entries_) {
    if (!Fits(entry, tail.tokens, spans_)) {
      return absl::DataLossError("its index points outside the tokens");
    }
  }
  const std::string notes(bytes_ + at.notes, tail.notes_bytes);
  notes_ = absl::StrSplit(notes, '\n', absl::SkipEmpty());
  checksums_ = bytes_ + at.checksums;
  return absl::OkStatus();
}

absl::Status TokenCache::CheckTokens(int threads) const {
  return ParallelFor(threads, ChunksOf(total_tokens()), [&](int, int64_t chunk) -> absl::Status {
    const int64_t first = chunk * kChunkTokens;
    const int64_t count = std::min(kChunkTokens, total_tokens() - first);
    uint32_t wanted;
    std::memcpy(&wanted, checksums_ + chunk * 4, sizeof(wanted));
    if (Checksum(0, tokens_.data() + first, count * 4) == wanted) return absl::OkStatus();
    return absl::DataLossError("the checksum of its tokens is wrong");
  });
}

TokenCacheWriter::TokenCacheWriter(int fd, std::string path) : fd_(fd), path_(std::move(path)) {
  chunk_.reserve(kChunkTokens);
}

absl::Status TokenCacheWriter::Begin(const std::string& key) {
  head_ = std::string(kMagic, sizeof(kMagic)) + key;
  return WriteAll(fd_, head_, path_);
}

absl::Status TokenCacheWriter::FlushChunk() {
  if (chunk_.empty()) return absl::OkStatus();
  checksums_.push_back(Checksum(0, chunk_.data(), chunk_.size() * 4));
  RETURN_IF_ERROR(WriteAll(
      fd_, absl::string_view(reinterpret_cast<const char*>(chunk_.data()), chunk_.size() * 4),
      path_));
  chunk_.clear();
  return absl::OkStatus();
}

absl::Status TokenCacheWriter::Append(const EncodedExample& example, int64_t bytes) {
  entries_.push_back({.first_token = tokens_,
                      .first_span = static_cast<int64_t>(spans_.size()),
                      .tokens = static_cast<int32_t>(example.tokens.size()),
                      .spans = static_cast<int32_t>(example.taught.size()),
                      .bytes = bytes});
  spans_.insert(spans_.end(), example.taught.begin(), example.taught.end());
  tokens_ += static_cast<int64_t>(example.tokens.size());
  for (auto next = example.tokens.begin(); next != example.tokens.end();) {
    const int64_t count = std::min<int64_t>(kChunkTokens - static_cast<int64_t>(chunk_.size()),
                                            example.tokens.end() - next);
    chunk_.insert(chunk_.end(), next, next + count);
    next += count;
    if (static_cast<int64_t>(chunk_.size()) == kChunkTokens) RETURN_IF_ERROR(FlushChunk());
  }
  return absl::OkStatus();
}

absl::Status TokenCacheWriter::Finish() {
  RETURN_IF_ERROR(FlushChunk());
  const std::string notes = absl::StrJoin(notes_, "\n");
  Tail tail{.tokens = tokens_,
            .entries = static_cast<int64_t>(entries_.size()),
            .spans = static_cast<int64_t>(spans_.size()),
            .notes_bytes = static_cast<int64_t>(notes.size())};
  const Layout at(tail);
  std::string rest(at.entries - at.tokens_end, '\0');
  const auto append = [&](const void* data, size_t size) {
    rest.append(static_cast<const char*>(data), size);
  };
  append(entries_.data(), entries_.size() * sizeof(TokenCacheEntry));
  append(spans_.data(), spans_.size() * sizeof(TokenSpan));
  append(checksums_.data(), checksums_.size() * sizeof(uint32_t));
  rest += notes;
  uint32_t checksum = Checksum(0, head_.data(), head_.size());
  checksum = Checksum(checksum, rest.data(), rest.size());
  tail.checksum = Checksum(checksum, &tail, sizeof(Tail));
  append(&tail, sizeof(Tail));
  return WriteAll(fd_, rest, path_);
}

absl::Status WriteTokenCache(const std::string& path, const std::string& key,
                             absl::FunctionRef<absl::Status(TokenCacheWriter*)> fill) {
  return ReplaceFile(path, [&](int fd) -> absl::Status {
    TokenCacheWriter writer(fd, path);
    RETURN_IF_ERROR(writer.Begin(key));
    RETURN_IF_ERROR(fill(&writer));
    return writer.Finish();
  });
}

}  // namespace tritonrl
