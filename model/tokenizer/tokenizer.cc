#include "model/tokenizer/tokenizer.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "base/utf8.h"
#include "model/tokenizer/added_tokens.h"
#include "model/tokenizer/bpe.h"
#include "model/tokenizer/normalizer.h"
#include "model/tokenizer/pre_tokenizer.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
namespace {

// More ids than any vocabulary has. The limit keeps a damaged file from allocating gigabytes.
constexpr int32_t kMaxIds = 1 << 24;

// Returns the ByteLevel decoder's bytes for a token: its bytes if it is written in the alphabet,
// else the token itself.
std::string TokenToBytes(const std::string& token) {
  std::optional<std::string> bytes = DecodeBytes(token);
  return bytes ? *std::move(bytes) : token;
}

}  // namespace

struct Tokenizer::Impl {
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Bpe bpe;
  AddedTokenFinder raw_finder;         // Finds added tokens in the raw text.
  AddedTokenFinder normalized_finder;  // Finds added tokens in the normalized text.
  std::vector<std::string> bytes;      // By id.
  std::vector<bool> special;           // By id.
  absl::flat_hash_map<std::string, int32_t> id_of_bytes;

  static absl::StatusOr<std::shared_ptr<const Impl>> FromJson(const nlohmann::json& json);
  absl::Status AddTokens(std::vector<AddedToken> added);
  void EncodeNormalized(absl::string_view text, std::vector<int32_t>* ids) const;
};

absl::StatusOr<std::shared_ptr<const Tokenizer::Impl>> Tokenizer::Impl::FromJson(
    const nlohmann::json& json) {
  auto impl = std::make_shared<Impl>();
  const auto part = [&](const char* name) { return json.value(name, nlohmann::json()); };
  ASSIGN_OR_RETURN(impl->normalizer, Normalizer::FromJson(part("normalizer")));
  ASSIGN_OR_RETURN(impl->pre_tokenizer, PreTokenizer::FromJson(part("pre_tokenizer")));
  ASSIGN_OR_RETURN(impl->bpe, Bpe::FromJson(part("model")));
  const nlohmann::json decoder = part("decoder");
  if (!decoder.is_object() || decoder.value("type", "") != "ByteLevel") {
    return absl::InvalidArgumentError("decoder is not ByteLevel");
  }
  ASSIGN_OR_RETURN(std::vector<AddedToken> added, ReadAddedTokens(part("added_tokens")));
  RETURN_IF_ERROR(impl->AddTokens(std::move(added)));
  return impl;
}

absl::Status Tokenizer::Impl::AddTokens(std::vector<AddedToken> added) {
  int32_t most = -1;
  for (const auto& [token, id] : bpe.tokens()) most = std::max(most, id);
  for (const AddedToken& token : added) most = std::max(most, token.id);
  if (most < 0 || most >= kMaxIds) {
    return absl::InvalidArgumentError(absl::StrCat("largest token id is ", most));
  }
  bytes.resize(most + 1);
  special.resize(most + 1);
  for (const auto& [token, id] : bpe.tokens()) {
    if (id < 0)
      return absl::InvalidArgumentError(absl::StrCat("token \"", token, "\" has id ", id));
    bytes[id] = TokenToBytes(token);
    id_of_bytes.try_emplace(bytes[id], id);
  }
  std::vector<AddedToken> kinds[2];
  std::vector<std::string> patterns[2];
  for (AddedToken& token : added) {
    bytes[token.id] = TokenToBytes(token.content);
    special[token.id] = token.special;
    id_of_bytes[token.content] = token.id;
    const int kind = token.normalized ? 1 : 0;
    patterns[kind].push_back(token.normalized ? normalizer.Normalize(token.content)
                                              : token.content);
    kinds[kind].push_back(std::move(token));
  }
  raw_finder = AddedTokenFinder(std::move(kinds[0]), patterns[0]);
  normalized_finder = AddedTokenFinder(std::move(kinds[1]), patterns[1]);
  return absl::OkStatus();
}

void Tokenizer::Impl::EncodeNormalized(absl::string_view text, std::vector<int32_t>* ids) const {
  for (absl::string_view piece : pre_tokenizer.Split(text).views) bpe.Encode(piece, ids);
}

Tokenizer::Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<Tokenizer> Tokenizer::Load(const std::string& tokenizer_json_path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(tokenizer_json_path));
  return FromJson(text, tokenizer_json_path);
}

absl::StatusOr<Tokenizer> Tokenizer::FromJson(absl::string_view json, const std::string& name) {
  try {
    const nlohmann::json parsed = nlohmann::json::parse(json.begin(), json.end());
    absl::StatusOr<std::shared_ptr<const Impl>> impl = Impl::FromJson(parsed);
    if (!impl.ok()) return AddContext(impl.status(), absl::StrCat("tokenizer ", name));
    return Tokenizer(*std::move(impl));
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokenizer ", name, " is not a valid tokenizer.json: ", error.what()));
  }
}

std::vector<int32_t> Tokenizer::Encode(absl::string_view text, bool parse_special) const {
  const std::string repaired = RepairUtf8(text);
  std::vector<int32_t> ids;
  for (const TextPart& part : impl_->raw_finder.Split(repaired, parse_special)) {
    if (part.id >= 0) {
      ids.push_back(part.id);
      continue;
    }
    const std::string normalized = impl_->normalizer.Normalize(part.text);
    for (const TextPart& inner : impl_->normalized_finder.Split(normalized, parse_special)) {
      if (inner.id >= 0) {
        ids.push_back(inner.id);
      } else {
        impl_->EncodeNormalized(inner.text, &ids);
      }
    }
  }
  return ids;
}

std::string Tokenizer::Decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string bytes;
  for (int32_t id : ids) {
    if (skip_special && IsSpecial(id)) continue;
    bytes += TokenBytes(id);
  }
  return RepairUtf8(bytes);
}

const std::string& Tokenizer::TokenBytes(int32_t id) const {
  static const std::string kNone;
  return id >= 0 && id < vocab_size() ? impl_->bytes[id] : kNone;
}

std::optional<int32_t> Tokenizer::TokenId(absl::string_view text) const {
  const auto it = impl_->id_of_bytes.find(text);
  if (it == impl_->id_of_bytes.end()) return std::nullopt;
  return it->second;
}

bool Tokenizer::IsSpecial(int32_t id) const {
  return id >= 0 && id < vocab_size() && impl_->special[id];
}

int Tokenizer::vocab_size() const { return static_cast<int>(impl_->bytes.size()); }

}  // namespace tritonrl
