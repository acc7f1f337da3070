#include "model/tokenizer/bpe.h"

#include <array>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "base/utf8.h"

namespace tritonrl {

namespace {

constexpr int kAlphabetEnd = 0x100 + 68;

constexpr bool IsPrintable(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<char32_t, 256> to_char{};
  std::array<int, kAlphabetEnd> to_byte{};  // -1: no byte
};

constexpr Alphabet MakeAlphabet() {
  Alphabet alphabet;
  for (int& byte : alphabet.to_byte) byte = -1;
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t code_point = IsPrintable(byte) ? static_cast<char32_t>(byte) : next++;
    alphabet.to_char[byte] = code_point;
    alphabet.to_byte[code_point] = byte;
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = MakeAlphabet();

}  // namespace

char32_t ByteToChar(uint8_t byte) { return kAlphabet.to_char[byte]; }

std::optional<uint8_t> CharToByte(char32_t code_point) {
  if (code_point >= kAlphabetEnd || kAlphabet.to_byte[code_point] < 0) return std::nullopt;
  return static_cast<uint8_t>(kAlphabet.to_byte[code_point]);
}

std::string EncodeBytes(absl::string_view bytes) {
  std::string written;
  for (char byte : bytes) AppendUtf8(ByteToChar(static_cast<uint8_t>(byte)), &written);
  return written;
}

std::optional<std::string> DecodeBytes(absl::string_view written) {
  std::string bytes;
  while (!written.empty()) {
    const Utf8Char next = DecodeUtf8Char(written);
    const std::optional<uint8_t> byte = CharToByte(next.code_point);
    if (!next.valid || !byte) return std::nullopt;
    bytes.push_back(static_cast<char>(*byte));
    written.remove_prefix(next.length);
  }
  return bytes;
}

namespace {

// Options of the file that must be absent, null, false, zero or empty.
constexpr const char* kUnsupportedOptions[] = {"dropout", "continuing_subword_prefix",
                                               "end_of_word_suffix"};

bool IsUnset(const nlohmann::json& json, const char* name) {
  const auto it = json.find(name);
  return it == json.end() || it->is_null() || *it == false || *it == "" || *it == 0.0;
}

// Returns -1 if the vocabulary has no such token.
int32_t IdOf(const absl::flat_hash_map<std::string, int32_t>& vocab, const std::string& token) {
  const auto it = vocab.find(token);
  return it == vocab.end() ? -1 : it->second;
}

absl::StatusOr<std::pair<std::string, std::string>> ReadPair(const nlohmann::json& entry,
                                                             int rank) {
  if (entry.is_array() && entry.size() == 2) {
    return std::pair(entry[0].get<std::string>(), entry[1].get<std::string>());
  }
  if (entry.is_string()) {
    const std::string text = entry.get<std::string>();
    const size_t space = text.find(' ');
    if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
      return std::pair(text.substr(0, space), text.substr(space + 1));
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("model.merges entry ", rank, " is not a pair"));
}

}  // namespace

absl::StatusOr<Bpe> Bpe::FromJson(const nlohmann::json& json, bool byte_level) {
  // Old files omit the type.
  const std::string type = json.is_object() ? json.value("type", "BPE") : "";
  if (type != "BPE") {
    return absl::InvalidArgumentError(
        absl::StrCat("model type \"", type, "\" is not supported (BPE is)"));
  }
  for (const char* option : kUnsupportedOptions) {
    if (!IsUnset(json, option)) {
      return absl::InvalidArgumentError(absl::StrCat("model option ", option, " is not supported"));
    }
  }
  Bpe bpe;
  bpe.byte_level_ = byte_level;
  absl::flat_hash_map<std::string, int32_t> vocab;
  for (const auto& [token, id] : json.at("vocab").items()) {
    vocab[token] = id.get<int32_t>();
    bpe.tokens_.emplace_back(token, id.get<int32_t>());
  }
  bpe.ReadUnits(vocab);
  if (json.value("byte_fallback", false)) {
    for (int byte = 0; byte < 256; ++byte) {
      bpe.fallback_ids_[byte] = IdOf(vocab, absl::StrFormat("<0x%02X>", byte));
    }
  }
  if (const nlohmann::json unknown = json.value("unk_token", nlohmann::json());
      unknown.is_string()) {
    bpe.unknown_id_ = IdOf(vocab, unknown.get<std::string>());
  }
  bpe.fuse_unknown_ = json.value("fuse_unk", false);
  if (json.value("ignore_merges", false)) {
    for (const auto& [token, id] : bpe.tokens_) {
      if (!byte_level) {
        bpe.whole_pieces_[token] = id;
      } else if (std::optional<std::string> bytes = DecodeBytes(token)) {
        bpe.whole_pieces_[*bytes] = id;
      }
    }
  }
  RETURN_IF_ERROR(bpe.ReadMerges(json.at("merges"), vocab));
  return bpe;
}

void Bpe::ReadUnits(const absl::flat_hash_map<std::string, int32_t>& vocab) {
  fallback_ids_.fill(-1);
  for (int byte = 0; byte < 256; ++byte) {
    std::string written;
    AppendUtf8(ByteToChar(static_cast<uint8_t>(byte)), &written);
    byte_ids_[byte] = IdOf(vocab, written);
  }
  if (byte_level_) return;
  for (const auto& [token, id] : tokens_) {
    if (token.empty()) continue;
    const Utf8Char first = DecodeUtf8Char(token);
    if (first.valid && first.length == token.size()) char_ids_[first.code_point] = id;
  }
}

absl::Status Bpe::ReadMerges(const nlohmann::json& list,
                             const absl::flat_hash_map<std::string, int32_t>& vocab) {
  merges_.reserve(list.size());
  int32_t rank = 0;
  for (const nlohmann::json& entry : list) {
    std::pair<std::string, std::string> pair;
    ASSIGN_OR_RETURN(pair, ReadPair(entry, rank));
    const auto left = vocab.find(pair.first);
    const auto right = vocab.find(pair.second);
    const auto merged = vocab.find(absl::StrCat(pair.first, pair.second));
    if (left == vocab.end() || right == vocab.end() || merged == vocab.end()) {
      return absl::InvalidArgumentError(absl::StrCat("model.merges entry ", rank, " (\"",
                                                     pair.first, "\" \"", pair.second,
                                                     "\") names a token that is not in the "
                                                     "vocabulary"));
    }
    merges_[PairKey(left->second, right->second)] = {rank++, merged->second};
  }
  return absl::OkStatus();
}

std::vector<Bpe::Symbol> Bpe::Symbols(absl::string_view piece) const {
  std::vector<Symbol> symbols;
  symbols.reserve(piece.size());
  const auto add = [&](int32_t id) {
    const int index = static_cast<int>(symbols.size());
    if (index > 0) symbols.back().next = index;
    symbols.push_back({id, index - 1, -1, false});
  };
  // The library adds an unknown token late, when the next known unit comes; byte fallback does not
  // count as one.
  bool unknown = false;
  const auto add_unknown = [&] {
    if (unknown) add(unknown_id_);
    unknown = false;
  };
  const auto fall_back = [&](absl::string_view unit) {
    for (char byte : unit) {
      if (fallback_ids_[static_cast<uint8_t>(byte)] < 0) return false;
    }
    for (char byte : unit) add(fallback_ids_[static_cast<uint8_t>(byte)]);
    return true;
  };
  while (!piece.empty()) {
    size_t length = 1;
    int32_t id = -1;
    if (byte_level_) {
      id = byte_ids_[static_cast<uint8_t>(piece[0])];
    } else {
      const Utf8Char next = DecodeUtf8Char(piece);
      length = next.length;
      const auto it = char_ids_.find(next.code_point);
      if (it != char_ids_.end()) id = it->second;
    }
    const absl::string_view unit = piece.substr(0, length);
    piece.remove_prefix(length);
    if (id >= 0) {
      add_unknown();
      add(id);
    } else if (!fall_back(byte_level_ ? EncodeBytes(unit) : std::string(unit)) &&
               unknown_id_ >= 0) {
      if (!fuse_unknown_) add_unknown();
      unknown = true;
    }
  }
  add_unknown();
  return symbols;
}

void Bpe::MergeAll(std::vector<Symbol>* symbols_ptr) const {
  std::vector<Symbol>& symbols = *symbols_ptr;
  // (rank, index of the left symbol, id of the result); an entry is stale once the pair at its
  // index has another result.
  using Entry = std::tuple<int32_t, int, int32_t>;
  std::vector<Entry> storage;
  storage.reserve(symbols.size());
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue(std::greater<Entry>(),
                                                                            std::move(storage));
  const auto offer = [&](int left) {
    if (left < 0) return;
    symbols[left].merged_id = -1;
    if (symbols[left].next < 0) return;
    const auto it = merges_.find(PairKey(symbols[left].id, symbols[symbols[left].next].id));
    if (it == merges_.end()) return;
    symbols[left].merged_id = it->second.id;
    queue.emplace(it->second.rank, left, it->second.id);
  };
  for (int i = 0; i < static_cast<int>(symbols.size()); ++i) offer(i);
  while (!queue.empty()) {
    const auto [rank, left, id] = queue.top();
    queue.pop();
    Symbol& symbol = symbols[left];
    if (symbol.merged_away || symbol.merged_id != id) continue;
    Symbol& right = symbols[symbol.next];
    symbol.id = id;
    symbol.next = right.next;
    right.merged_away = true;
    if (right.next >= 0) symbols[right.next].previous = left;
    offer(symbol.previous);
    offer(left);
  }
}

void Bpe::Encode(absl::string_view piece, std::vector<int32_t>* ids) const {
  if (piece.empty()) return;
  if (!whole_pieces_.empty()) {
    const auto it = whole_pieces_.find(piece);
    if (it != whole_pieces_.end()) {
      ids->push_back(it->second);
      return;
    }
  }
  std::vector<Symbol> symbols = Symbols(piece);
  if (symbols.empty()) return;
  MergeAll(&symbols);
  // Symbol 0 is never merged away: merges keep the left one.
  for (int i = 0; i >= 0; i = symbols[i].next) ids->push_back(symbols[i].id);
}

}  // namespace tritonrl
