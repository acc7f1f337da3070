#include "model/weights/safetensors.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/git_lfs.h"
#include "base/status.h"
#include "model/weights/model_folder.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxHeaderBytes = 100 << 20;  // limit of the format

const std::pair<const char*, at::ScalarType> kTypes[] = {
    {"F64", at::kDouble}, {"F32", at::kFloat}, {"F16", at::kHalf},  {"BF16", at::kBFloat16},
    {"I64", at::kLong},   {"I32", at::kInt},   {"I16", at::kShort}, {"I8", at::kChar},
    {"U8", at::kByte},    {"BOOL", at::kBool}};

std::optional<at::ScalarType> TypeFromName(const std::string& name) {
  for (const auto& [text, type] : kTypes) {
    if (name == text) return type;
  }
  return std::nullopt;
}

absl::StatusOr<std::string> TypeName(at::ScalarType type) {
  for (const auto& [text, candidate] : kTypes) {
    if (type == candidate) return std::string(text);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("element type ", c10::toString(type), " can't be stored as safetensors"));
}

// The value of an extent or offset; null if `json` is none. The limit is above the size of any file
// and leaves room for sums.
std::optional<int64_t> ParseSize(const Json& json) {
  if (!json.is_number_unsigned() || json.get<uint64_t>() >> 62 != 0) return std::nullopt;
  return json.get<int64_t>();
}

// Parses and checks one header entry. The offsets of the result are relative to the data section.
absl::StatusOr<SafetensorsEntry> ParseEntry(const std::string& path, const std::string& name,
                                            const Json& json) {
  auto error = [&](const std::string& problem) {
    return absl::DataLossError(absl::StrCat(path, ": tensor ", name, " ", problem));
  };
  if (!json.is_object() || !json.contains("dtype") || !json.at("dtype").is_string() ||
      !json.contains("shape") || !json.at("shape").is_array() || !json.contains("data_offsets") ||
      !json.at("data_offsets").is_array() || json.at("data_offsets").size() != 2) {
    return error("has a malformed header entry");
  }
  SafetensorsEntry entry;
  entry.path = path;
  const std::string type = json.at("dtype");
  const std::optional<at::ScalarType> dtype = TypeFromName(type);
  if (!dtype) {
    const bool quantized = absl::StartsWith(type, "F8_") || absl::StartsWith(type, "F4");
    return error(absl::StrCat(
        "has element type ", type, ", which is not supported",
        quantized ? ": the checkpoint is quantized; use the bf16 weights of the model" : ""));
  }
  entry.dtype = *dtype;
  int64_t size = static_cast<int64_t>(c10::elementSize(*dtype));
  for (const Json& n : json.at("shape")) {
    const std::optional<int64_t> extent = ParseSize(n);
    if (!extent) return error("has a malformed shape");
    if (*extent > 0 && size > std::numeric_limits<int64_t>::max() / *extent) {
      return error("has an impossible shape");
    }
    size *= *extent;
    entry.shape.push_back(*extent);
  }
  const Json& offsets = json.at("data_offsets");
  const std::optional<int64_t> begin = ParseSize(offsets[0]), end = ParseSize(offsets[1]);
  if (!begin || !end) return error("has malformed data offsets");
  entry.begin = *begin;
  entry.size = size;
  if (*end - *begin != size) {
    return error(absl::StrCat("has a byte range that does not fit its shape [",
                              absl::StrJoin(entry.shape, ", "), "] of ", type));
  }
  return entry;
}

}  // namespace

absl::Status ReadElements(const SafetensorsEntry& entry, int64_t begin, int64_t count, void* to) {
  return ReadStrided(entry, begin, count, 1, count, to);
}

absl::Status ReadStrided(const SafetensorsEntry& entry, int64_t begin, int64_t count, int64_t runs,
                         int64_t stride, void* to) {
  const ScopedFd file(open(entry.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return ErrnoStatus(errno, "open", entry.path);
  const int64_t size = static_cast<int64_t>(c10::elementSize(entry.dtype));
  for (int64_t run = 0; run < runs; ++run) {
    RETURN_IF_ERROR(ReadAt(file.get(), entry.begin + (begin + run * stride) * size, count * size,
                           static_cast<char*>(to) + run * count * size, entry.path));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> SameElements(const SafetensorsEntry& a, const SafetensorsEntry& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  if (a.path == b.path && a.begin == b.begin) return true;
  constexpr int64_t kChunkBytes = 4 << 20;
  const ScopedFd file_a(open(a.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file_a.valid()) return ErrnoStatus(errno, "open", a.path);
  const ScopedFd file_b(open(b.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file_b.valid()) return ErrnoStatus(errno, "open", b.path);
  std::string bytes_a, bytes_b;
  for (int64_t at = 0; at < a.size; at += kChunkBytes) {
    const int64_t count = std::min(kChunkBytes, a.size - at);
    bytes_a.resize(count);
    bytes_b.resize(count);
    RETURN_IF_ERROR(ReadAt(file_a.get(), a.begin + at, count, bytes_a.data(), a.path));
    RETURN_IF_ERROR(ReadAt(file_b.get(), b.begin + at, count, bytes_b.data(), b.path));
    if (bytes_a != bytes_b) return false;
  }
  return true;
}

absl::StatusOr<SafetensorsReader> SafetensorsReader::OpenFile(const std::string& path) {
  const ScopedFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return ErrnoStatus(errno, "open", path);
  ASSIGN_OR_RETURN(const int64_t file_size, FileSize(path));
  unsigned char prefix[8] = {};
  if (file_size < 8) return absl::DataLossError(absl::StrCat(path, ": truncated (no header)"));
  std::string start(std::min<int64_t>(file_size, 64), '\0');
  RETURN_IF_ERROR(ReadAt(file.get(), 0, static_cast<int64_t>(start.size()), start.data(), path));
  RETURN_IF_ERROR(RefuseGitLfsPointer(start, path));
  RETURN_IF_ERROR(ReadAt(file.get(), 0, 8, reinterpret_cast<char*>(prefix), path));
  uint64_t header_size = 0;
  for (int i = 7; i >= 0; --i) header_size = header_size << 8 | prefix[i];
  if (header_size > static_cast<uint64_t>(kMaxHeaderBytes)) {
    return absl::DataLossError(absl::StrCat(path, ": not a safetensors file (header too large)"));
  }
  const int64_t data_begin = 8 + static_cast<int64_t>(header_size);
  if (data_begin > file_size) {
    return absl::DataLossError(absl::StrCat(path, ": truncated within its header (", file_size,
                                            " bytes, header needs ", data_begin, ")"));
  }
  std::string header(header_size, '\0');
  RETURN_IF_ERROR(ReadAt(file.get(), 8, static_cast<int64_t>(header_size), header.data(), path));
  const Json json = Json::parse(header, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::DataLossError(absl::StrCat(path, ": not a safetensors file (header is not JSON)"));
  }
  SafetensorsReader reader;
  reader.where_ = path;
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") continue;
    ASSIGN_OR_RETURN(SafetensorsEntry entry, ParseEntry(path, name, value));
    entry.begin += data_begin;
    if (entry.begin > file_size || entry.size > file_size - entry.begin) {
      return absl::DataLossError(absl::StrCat(path, ": truncated: tensor ", name, " ends at byte ",
                                              entry.begin + entry.size, " of a file of ", file_size,
                                              " bytes; copy or download it again"));
    }
    reader.entries_.emplace(name, std::move(entry));
  }
  return reader;
}

absl::StatusOr<SafetensorsReader> SafetensorsReader::OpenFolder(const std::string& dir) {
  const std::string index_path = JoinPath(dir, "model.safetensors.index.json");
  const std::string single = JoinPath(dir, "model.safetensors");
  if (FileExists(single)) return OpenFile(single);
  if (!FileExists(index_path)) return NoWeightsError(dir);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(index_path));
  RETURN_IF_ERROR(RefuseGitLfsPointer(text, index_path));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("weight_map") || !json.at("weight_map").is_object()) {
    return absl::DataLossError(absl::StrCat(index_path, ": no object weight_map in it"));
  }
  SafetensorsReader all;
  all.where_ = dir;
  std::map<std::string, SafetensorsReader> shards;
  for (const auto& [name, file] : json.at("weight_map").items()) {
    if (!file.is_string() || file.get<std::string>().find('/') != std::string::npos) {
      return absl::DataLossError(absl::StrCat(index_path, ": places tensor ", name, " in ",
                                              file.dump(), ", which is no file of the folder"));
    }
    const std::string path = JoinPath(dir, file.get<std::string>());
    auto shard = shards.find(path);
    if (shard == shards.end()) {
      if (!FileExists(path)) {
        return absl::DataLossError(absl::StrCat(
            path,
            ": is missing, though model.safetensors.index.json lists it; copy or download "
            "it into the folder"));
      }
      ASSIGN_OR_RETURN(SafetensorsReader opened, OpenFile(path));
      shard = shards.emplace(path, std::move(opened)).first;
    }
    auto entry = shard->second.entries_.find(name);
    if (entry == shard->second.entries_.end()) {
      return absl::DataLossError(
          absl::StrCat(path, ": tensor ", name, " is missing, though the index promises it"));
    }
    all.entries_.insert(*entry);
  }
  return all;
}

absl::StatusOr<at::Tensor> SafetensorsReader::Read(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    return absl::NotFoundError(absl::StrCat(where_, ": tensor ", name, " is missing"));
  }
  const SafetensorsEntry& entry = found->second;
  at::Tensor tensor = at::empty(entry.shape, at::TensorOptions(entry.dtype));
  RETURN_IF_ERROR(AddContext(ReadElements(entry, 0, tensor.numel(), tensor.data_ptr()),
                             absl::StrCat("tensor ", name)));
  return tensor;
}

absl::Status WriteSafetensors(const std::string& path,
                              const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                              const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header;
  if (!metadata.empty()) header["__metadata__"] = metadata;
  int64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    ASSIGN_OR_RETURN(const std::string type, TypeName(tensor.scalar_type()));
    const int64_t size = tensor.numel() * static_cast<int64_t>(tensor.element_size());
    header[name] = {{"dtype", type},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {offset, offset + size}}};
    offset += size;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // align the data section to 8 bytes
  std::string prefix(8, '\0');
  for (int i = 0; i < 8; ++i) prefix[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  text = prefix + text;

  return ReplaceFile(path, [&](int fd) -> absl::Status {
    RETURN_IF_ERROR(WriteAll(fd, text, path));
    for (const auto& [name, tensor] : tensors) {
      const at::Tensor data = tensor.detach().to(at::kCPU).contiguous();
      RETURN_IF_ERROR(WriteAll(
          fd, absl::string_view(static_cast<const char*>(data.data_ptr()), data.nbytes()), path));
    }
    return absl::OkStatus();
  });
}

}  // namespace tritonrl
