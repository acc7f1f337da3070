#include "exec/compare/tensor_layout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl {

namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 32;
constexpr size_t kMaxLeaves = 4096;
constexpr size_t kMaxDimensions = 64;
constexpr size_t kMaxName = 80;
constexpr int64_t kMaxElements = int64_t{1} << 48;

struct NamedType {
  const char* name;
  DType type;
  int bytes;
};

constexpr NamedType kTypes[] = {
    {"bool", DType::kBool, 1},
    {"uint8", DType::kUint8, 1},
    {"uint16", DType::kUint16, 2},
    {"uint32", DType::kUint32, 4},
    {"uint64", DType::kUint64, 8},
    {"int8", DType::kInt8, 1},
    {"int16", DType::kInt16, 2},
    {"int32", DType::kInt32, 4},
    {"int64", DType::kInt64, 8},
    {"float8_e4m3fn", DType::kFloat8E4M3Fn, 1},
    {"float8_e5m2", DType::kFloat8E5M2, 1},
    {"float16", DType::kFloat16, 2},
    {"bfloat16", DType::kBFloat16, 2},
    {"float32", DType::kFloat32, 4},
    {"float64", DType::kFloat64, 8},
    {"complex64", DType::kComplex64, 8},
    {"complex128", DType::kComplex128, 16},
};

absl::Status NoSense(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("a tensor layout makes no sense: ", what));
}

// Reads a list of non-negative integers.
absl::StatusOr<std::vector<int64_t>> Sizes(const Json& node, const char* name) {
  const auto found = node.find(name);
  if (found == node.end() || !found->is_array() || found->size() > kMaxDimensions) {
    return NoSense(absl::StrCat(name, " is no short list"));
  }
  std::vector<int64_t> sizes;
  for (const Json& item : *found) {
    if (!item.is_number_integer() || item.get<int64_t>() < 0 ||
        item.get<int64_t>() > kMaxElements) {
      return NoSense(absl::StrCat(name, " holds ", item.dump(-1, ' ', true).substr(0, kMaxName)));
    }
    sizes.push_back(item.get<int64_t>());
  }
  return sizes;
}

absl::StatusOr<std::string> Name(const Json& node, const char* name) {
  const auto found = node.find(name);
  if (found == node.end() || !found->is_string()) {
    return NoSense(absl::StrCat(name, " is no text"));
  }
  std::string text = found->get<std::string>();
  if (text.size() > kMaxName) return NoSense(absl::StrCat(name, " is too long"));
  return text;
}

// True if the tensor is row-major without gaps; a dimension of size 1 may have any stride.
bool IsDense(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != step) return false;
    step *= std::max<int64_t>(shape[i], 1);
  }
  return true;
}

absl::StatusOr<Leaf> ReadTensor(const Json& node, uint64_t memory_bytes) {
  if (!node.is_object()) return NoSense("a tensor is no object");
  Leaf leaf;
  leaf.kind = Leaf::Kind::kTensor;
  leaf.type_name = "tensor";
  ASSIGN_OR_RETURN(leaf.dtype, Name(node, "dtype"));
  ASSIGN_OR_RETURN(leaf.device, Name(node, "device"));
  ASSIGN_OR_RETURN(leaf.layout, Name(node, "layout"));
  ASSIGN_OR_RETURN(leaf.shape, Sizes(node, "shape"));
  ASSIGN_OR_RETURN(std::vector<int64_t> strides, Sizes(node, "stride"));
  if (strides.size() != leaf.shape.size()) return NoSense("as many strides as sizes are needed");
  leaf.elements = leaf.distinct_elements = 1;
  for (size_t i = 0; i < leaf.shape.size(); ++i) {
    const int64_t size = leaf.shape[i];
    if (size > 0 && leaf.elements > kMaxElements / size) return NoSense("the shape is too large");
    leaf.elements *= size;
    if (strides[i] > 0 || size == 0) leaf.distinct_elements *= size;
  }
  leaf.dense = leaf.elements == 0 || IsDense(leaf.shape, strides);
  const auto address = node.find("address");
  if (address != node.end() && address->is_number_unsigned()) {
    leaf.address = address->get<uint64_t>();
  }
  const std::optional<DType> type = ParseDType(leaf.dtype);
  if (type.has_value()) leaf.type = *type;
  const auto offset = node.find("offset");
  if (offset == node.end()) return NoSense("offset is missing");
  if (offset->is_null()) return leaf;
  if (!type.has_value()) return NoSense(absl::StrCat("bytes of the unknown type ", leaf.dtype));
  if (!offset->is_number_unsigned()) return NoSense("offset is no unsigned integer");
  leaf.offset = offset->get<uint64_t>();
  const uint64_t size = static_cast<uint64_t>(leaf.bytes());
  if (*leaf.offset > memory_bytes || size > memory_bytes - *leaf.offset) {
    return NoSense(absl::StrCat("a tensor of ", size, " bytes at ", *leaf.offset,
                                " ends outside the ", memory_bytes, " bytes there are"));
  }
  return leaf;
}

absl::StatusOr<Leaf> ReadValue(const Json& value) {
  Leaf leaf;
  if (value.is_boolean() || value.is_number()) {
    leaf.kind = Leaf::Kind::kNumber;
    leaf.type_name = "number";
    leaf.number = value.is_boolean() ? value.get<bool>() : value.get<double>();
    return leaf;
  }
  if (!value.is_null() && !value.is_string()) return NoSense("a value is neither number nor text");
  leaf.type_name = value.is_null() ? "NoneType" : "str";
  leaf.text = value.dump(-1, ' ', true);
  return leaf;
}

absl::StatusOr<Leaf> ReadSpecialFloat(const Json& value) {
  Leaf leaf;
  leaf.kind = Leaf::Kind::kNumber;
  leaf.type_name = "number";
  const double infinity = std::numeric_limits<double>::infinity();
  if (value == "nan")
    leaf.number = std::nan("");
  else if (value == "inf")
    leaf.number = infinity;
  else if (value == "-inf")
    leaf.number = -infinity;
  else
    return NoSense("a float is neither nan, inf nor -inf");
  return leaf;
}

class Reader {
 public:
  explicit Reader(uint64_t memory_bytes) : memory_bytes_(memory_bytes) {}

  absl::Status Read(const Json& node, int depth) {
    if (depth > kMaxDepth) return NoSense("it is nested too deeply");
    if (!node.is_object() || node.size() != 1) return NoSense("a node is no object of one key");
    const std::string& kind = node.begin().key();
    const Json& value = node.begin().value();
    if (kind == "list" || kind == "tuple") return ReadItems(value, depth);
    if (kind == "dict" || kind == "config") return ReadPairs(value, depth);
    if (leaves_.size() >= kMaxLeaves) return NoSense("it has too many leaves");
    absl::StatusOr<Leaf> leaf = NoSense(absl::StrCat("a node of kind ", kind.substr(0, kMaxName)));
    if (kind == "tensor") leaf = ReadTensor(value, memory_bytes_);
    if (kind == "value") leaf = ReadValue(value);
    if (kind == "float") leaf = ReadSpecialFloat(value);
    if (kind == "other" || kind == "complex" || kind == "dtype" || kind == "device") {
      leaf = Leaf();
      leaf->type_name = kind == "other" && value.is_string()
                            ? value.get<std::string>().substr(0, kMaxName)
                            : kind;
      leaf->text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    }
    RETURN_IF_ERROR(leaf.status());
    leaf->bare = depth == 0;
    leaves_.push_back(*std::move(leaf));
    return absl::OkStatus();
  }

  std::vector<Leaf> Take() { return std::move(leaves_); }

 private:
  absl::Status ReadItems(const Json& items, int depth) {
    if (!items.is_array()) return NoSense("a list is none");
    for (const Json& item : items) RETURN_IF_ERROR(Read(item, depth + 1));
    return absl::OkStatus();
  }

  absl::Status ReadPairs(const Json& pairs, int depth) {
    if (!pairs.is_array()) return NoSense("a dict is no list of pairs");
    for (const Json& pair : pairs) {
      if (!pair.is_array() || pair.size() != 2) return NoSense("a dict's entry is no pair");
      RETURN_IF_ERROR(Read(pair[1], depth + 1));
    }
    return absl::OkStatus();
  }

  const uint64_t memory_bytes_;
  std::vector<Leaf> leaves_;
};

}  // namespace

std::optional<DType> ParseDType(absl::string_view name) {
  for (const NamedType& type : kTypes) {
    if (name == type.name) return type.type;
  }
  return std::nullopt;
}

int64_t SizeOf(DType type) {
  for (const NamedType& named : kTypes) {
    if (named.type == type) return named.bytes;
  }
  return 1;
}

absl::StatusOr<std::vector<Leaf>> ParseLayout(const Json& layout, uint64_t memory_bytes) {
  Reader reader(memory_bytes);
  RETURN_IF_ERROR(reader.Read(layout, 0));
  return reader.Take();
}

std::string FindSharedOutputs(const std::vector<Leaf>& outputs, const std::vector<Leaf>& inputs) {
  const auto share = [](const Leaf& a, const Leaf& b) {
    if (!a.address.has_value() || !b.address.has_value() || a.elements == 0 || b.elements == 0) {
      return false;
    }
    if (*a.address == *b.address) return true;
    if (!a.dense || !b.dense) return false;
    const Leaf& low = *a.address < *b.address ? a : b;
    const Leaf& high = *a.address < *b.address ? b : a;
    return *high.address - *low.address < static_cast<uint64_t>(low.bytes());
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (share(outputs[i], outputs[j])) {
        return absl::StrCat("outputs ", j, " and ", i, " lie in the same memory");
      }
    }
    for (size_t j = 0; j < inputs.size(); ++j) {
      if (share(outputs[i], inputs[j])) {
        return absl::StrCat("output ", i, " lies in the memory of input ", j);
      }
    }
  }
  return "";
}

}  // namespace tritonrl
