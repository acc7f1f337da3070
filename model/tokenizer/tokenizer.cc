#include "model/tokenizer/tokenizer.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/git_lfs.h"
#include "base/log.h"
#include "base/status.h"
#include "base/utf8.h"
#include "model/tokenizer/added_tokens.h"
#include "model/tokenizer/bpe.h"
#include "model/tokenizer/decoder.h"
#include "model/tokenizer/normalizer.h"
#include "model/tokenizer/post_processor.h"
#include "model/tokenizer/pre_tokenizer.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
namespace {

// More ids than any vocabulary has. The limit keeps a damaged file from allocating gigabytes.
constexpr int32_t kMaxIds = 1 << 24;

// Why there is no tokenizer.json at `path`: the folder may hold a tokenizer in another form.
absl::Status MissingFileError(const std::string& path, const absl::Status& error) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
  for (const char* other : {"vocab.json", "tokenizer.model", "qwen.tiktoken"}) {
    if (!FileExists(JoinPath(folder, other))) continue;
    return absl::NotFoundError(
        absl::StrCat(path, ": is missing; ", other,
                     " beside it is not read: make tokenizer.json with "
                     "transformers (AutoTokenizer.from_pretrained, then save_pretrained)"));
  }
  return error;
}

}  // namespace

struct Tokenizer::Impl {
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Bpe bpe;
  Decoder decoder;
  SpecialIds special_ids;
  AddedTokenFinder raw_finder;         // Finds added tokens in the raw text.
  AddedTokenFinder normalized_finder;  // Finds added tokens in the normalized text.
  std::vector<std::string> bytes;      // By id.
  std::vector<std::string> written;  // Tokens as the file writes them by id, if Decode needs them.
  std::vector<bool> special;         // By id.
  absl::flat_hash_map<std::string, int32_t> id_of_bytes;

  static absl::StatusOr<std::shared_ptr<const Impl>> FromJson(const nlohmann::json& json);
  absl::Status AddTokens(std::vector<AddedToken> added);
  void EncodeNormalized(absl::string_view text, bool at_start, std::vector<int32_t>* ids) const;
  void SetToken(int32_t id, const std::string& token);
};

absl::StatusOr<std::shared_ptr<const Tokenizer::Impl>> Tokenizer::Impl::FromJson(
    const nlohmann::json& json) {
  auto impl = std::make_shared<Impl>();
  const auto part = [&](const char* name) { return json.value(name, nlohmann::json()); };
  ASSIGN_OR_RETURN(impl->normalizer, Normalizer::FromJson(part("normalizer")));
  ASSIGN_OR_RETURN(impl->pre_tokenizer, PreTokenizer::FromJson(part("pre_tokenizer")));
  ASSIGN_OR_RETURN(impl->bpe, Bpe::FromJson(part("model"), impl->pre_tokenizer.byte_level()));
  ASSIGN_OR_RETURN(impl->decoder, Decoder::FromJson(part("decoder")));
  ASSIGN_OR_RETURN(impl->special_ids, ReadPostProcessor(part("post_processor")));
  ASSIGN_OR_RETURN(std::vector<AddedToken> added, ReadAddedTokens(part("added_tokens")));
  RETURN_IF_ERROR(impl->AddTokens(std::move(added)));
  return impl;
}

void Tokenizer::Impl::SetToken(int32_t id, const std::string& token) {
  bytes[id] = decoder.TokenBytes(token);
  if (!decoder.concatenates()) written[id] = token;
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
  if (!decoder.concatenates()) written.resize(most + 1);
  for (const auto& [token, id] : bpe.tokens()) {
    if (id < 0)
      return absl::InvalidArgumentError(absl::StrCat("token \"", token, "\" has id ", id));
    SetToken(id, token);
    id_of_bytes.try_emplace(bytes[id], id);
  }
  std::vector<AddedToken> kinds[2];
  std::vector<std::string> patterns[2];
  for (AddedToken& token : added) {
    SetToken(token.id, token.content);
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

void Tokenizer::Impl::EncodeNormalized(absl::string_view text, bool at_start,
                                       std::vector<int32_t>* ids) const {
  const Pieces pieces = pre_tokenizer.Split(text, at_start);
  // Most pieces of a text occur in it again: the ids of each are built once. The values are the
  // places in `ids`.
  absl::flat_hash_map<absl::string_view, std::pair<size_t, size_t>> known;
  for (absl::string_view piece : pieces.views) {
    const auto [it, is_new] = known.try_emplace(piece);
    if (is_new) {
      const size_t begin = ids->size();
      bpe.Encode(piece, ids);
      it->second = {begin, ids->size()};
    } else {
      const auto [begin, end] = it->second;
      for (size_t i = begin; i < end; ++i) ids->push_back((*ids)[i]);
    }
  }
}

Tokenizer::Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<Tokenizer> Tokenizer::Load(const std::string& tokenizer_json_path) {
  const absl::StatusOr<std::string> text = ReadFile(tokenizer_json_path);
  if (absl::IsNotFound(text.status())) return MissingFileError(tokenizer_json_path, text.status());
  RETURN_IF_ERROR(text.status());
  RETURN_IF_ERROR(RefuseGitLfsPointer(*text, tokenizer_json_path));
  return FromJson(*text, tokenizer_json_path);
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

std::vector<int32_t> Tokenizer::Encode(absl::string_view text, bool parse_special,
                                       bool add_special) const {
  const std::string repaired = RepairUtf8(text);
  std::vector<int32_t> ids;
  if (add_special) ids = special_prefix();
  for (const TextPart& part : impl_->raw_finder.Split(repaired, parse_special)) {
    if (part.id >= 0) {
      ids.push_back(part.id);
      continue;
    }
    const std::string normalized = impl_->normalizer.Normalize(part.text);
    const bool part_at_start = part.text.data() == repaired.data();
    for (const TextPart& inner : impl_->normalized_finder.Split(normalized, parse_special)) {
      if (inner.id >= 0) {
        ids.push_back(inner.id);
      } else {
        const bool at_start = part_at_start && inner.text.data() == normalized.data();
        impl_->EncodeNormalized(inner.text, at_start, &ids);
      }
    }
  }
  if (add_special) ids.insert(ids.end(), special_suffix().begin(), special_suffix().end());
  return ids;
}

const std::vector<int32_t>& Tokenizer::special_prefix() const { return impl_->special_ids.prefix; }
const std::vector<int32_t>& Tokenizer::special_suffix() const { return impl_->special_ids.suffix; }

std::string Tokenizer::Decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string bytes;
  std::vector<std::string> tokens;
  for (int32_t id : ids) {
    if (id < 0 || id >= vocab_size() || (skip_special && IsSpecial(id))) continue;
    if (impl_->decoder.concatenates()) {
      bytes += impl_->bytes[id];
    } else if (!impl_->written[id].empty()) {
      tokens.push_back(impl_->written[id]);
    }
  }
  return RepairUtf8(tokens.empty() ? bytes : impl_->decoder.Decode(std::move(tokens)));
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

absl::Status Tokenizer::CheckFits(int64_t vocab_size, absl::string_view dir) const {
  if (this->vocab_size() <= vocab_size) return absl::OkStatus();
  int32_t most = -1;
  for (const auto& [token, id] : impl_->bpe.tokens()) most = std::max(most, id);
  if (most >= vocab_size) {
    return absl::InvalidArgumentError(absl::StrCat(
        dir, ": tokenizer.json has ids up to ", most, ", but vocab_size in config.json is ",
        vocab_size, "; take the two files from the same model"));
  }
  std::vector<std::string> outside;
  for (int32_t id = static_cast<int32_t>(vocab_size); id < this->vocab_size(); ++id) {
    if (!TokenBytes(id).empty()) outside.push_back(TokenBytes(id));
  }
  Log(LogLevel::kWarning,
      absl::StrCat(
          dir, ": the model has no row for ", outside.size(),
          " added tokens of tokenizer.json (vocab_size is ", vocab_size,
          "); a text that holds one is refused: ",
          absl::StrJoin(std::vector<std::string>(
                            outside.begin(), outside.begin() + std::min<size_t>(outside.size(), 3)),
                        ", ")));
  return absl::OkStatus();
}

}  // namespace tritonrl
