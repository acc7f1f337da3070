#include "exec/device/cuda/testing/corpus_launches.h"

#include <math.h>
#include <string.h>

#include <algorithm>
#include <random>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "exec/device/bytes.h"
#include "exec/device/geometry.h"
#include "exec/device/testing/last_place.h"
#include "exec/ttir/parser.h"
#include "exec/ttir/testing/corpus.h"
#include "gtest/gtest.h"

namespace tritonrl::device {
namespace {

constexpr char kTable[] = "exec/ttir/run/testing/launch_counts.txt";

int64_t Number(absl::string_view text) {
  int64_t number = -1;
  EXPECT_TRUE(absl::SimpleAtoi(text, &number)) << text;
  return number;
}

std::vector<uint8_t> Contents(const std::string& word, const ttir::Type& type, uint32_t seed) {
  std::mt19937 random(seed);
  const std::vector<std::string> parts = absl::StrSplit(word.substr(1), '%');
  if (word[0] == 'm') {
    std::vector<uint8_t> bytes(static_cast<size_t>(Number(parts[0])) * 4);
    for (int64_t i = 0; i < Number(parts[0]); ++i) {
      // A histogram of 32 bins counts larger numbers otherwise on a GPU.
      const auto value = static_cast<int32_t>(i % std::min<int64_t>(Number(parts[1]), 32));
      memcpy(bytes.data() + 4 * i, &value, 4);
    }
    return bytes;
  }
  std::vector<uint8_t> bytes(static_cast<size_t>((Number(parts[0]) + 3) / 4 * 4));
  std::normal_distribution<float> normal;
  const auto fill = [&](auto zero, at::ScalarType) {
    using T = decltype(zero);
    for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
      const T value = static_cast<T>(normal(random));
      memcpy(bytes.data() + i, &value, sizeof(T));
    }
  };
  switch (type.element()) {
    case ttir::ScalarKind::kF16:
      fill(c10::Half(), at::kHalf);
      break;
    case ttir::ScalarKind::kBF16:
      fill(c10::BFloat16(), at::kBFloat16);
      break;
    case ttir::ScalarKind::kF32:
      fill(0.0f, at::kFloat);
      break;
    case ttir::ScalarKind::kF64:
      fill(0.0, at::kDouble);
      break;
    case ttir::ScalarKind::kF8E4M3FN:
    case ttir::ScalarKind::kF8E5M2:
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(0x30 + random() % 16);
      break;
    default:
      break;
  }
  return bytes;
}

CorpusLaunch Read(const std::string& line) {
  CorpusLaunch launch;
  const std::vector<std::string> sides = absl::StrSplit(line, " = ");
  const std::vector<std::string> words = absl::StrSplit(sides[0], ' ');
  launch.name = words[0];
  const std::vector<std::string> sizes = absl::StrSplit(words[1], ',');
  for (size_t i = 0; i < 3; ++i) launch.grid[i] = static_cast<int32_t>(Number(sizes[i]));
  const auto module = ttir::ParseTtir(ttir::CorpusTextOf(launch.name + ".ttir"));
  const ttir::Function* kernel = nullptr;
  for (const ttir::Function& function : module->functions) {
    if (function.is_public) kernel = &function;
  }
  for (size_t i = 2; i < words.size(); ++i) {
    LaunchArgument& argument = launch.arguments.emplace_back();
    const ttir::Type& type = kernel->TypeOf(kernel->arguments[i - 2].value);
    launch.types.push_back(type.is_pointer() ? type.Pointee() : type);
    launch.tensors.emplace_back();
    if (words[i][0] == 'i') {
      argument.integer = Number(words[i].substr(1));
    } else if (words[i][0] == 'f') {
      argument.kind = LaunchArgument::Kind::kFloat;
      EXPECT_TRUE(absl::SimpleAtod(words[i].substr(1), &argument.number));
    } else {
      argument.kind = LaunchArgument::Kind::kPointer;
      launch.tensors.back() = Contents(words[i], launch.types.back(), static_cast<uint32_t>(i));
    }
  }
  return launch;
}

at::ScalarType TypeOf(const ttir::Type& type) {
  if (type.is_pointer()) return at::kLong;
  switch (type.element()) {
    case ttir::ScalarKind::kF16:
      return at::kHalf;
    case ttir::ScalarKind::kBF16:
      return at::kBFloat16;
    case ttir::ScalarKind::kF32:
      return at::kFloat;
    case ttir::ScalarKind::kF64:
      return at::kDouble;
    case ttir::ScalarKind::kF8E4M3FN:
      return at::kFloat8_e4m3fn;
    case ttir::ScalarKind::kF8E5M2:
      return at::kFloat8_e5m2;
    default:
      return at::kByte;
  }
}

}  // namespace

std::vector<CorpusLaunch> ReadCorpusLaunches() {
  std::vector<CorpusLaunch> launches;
  const auto path = Runfile(kTable);
  EXPECT_TRUE(path.ok()) << path.status();
  const auto table = path.ok() ? ReadFile(*path) : path;
  EXPECT_TRUE(table.ok()) << table.status();
  if (!table.ok()) return launches;
  const std::vector<std::string> lines = absl::StrSplit(*table, '\n', absl::SkipEmpty());
  for (const std::string& line : lines) launches.push_back(Read(line));
  return launches;
}

double DistanceOf(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b,
                  const ttir::Type& of) {
  const at::ScalarType type = TypeOf(of);
  if (a == b) return 0;
  if (type == at::kByte || type == at::kLong) return INFINITY;
  const auto read = [&](const std::vector<uint8_t>& bytes) {
    const auto count = static_cast<int64_t>(bytes.size()) / BytesOf(type);
    return BytesAt(at::kCPU, const_cast<uint8_t*>(bytes.data()), count * BytesOf(type))
        .view(type)
        .to(at::kDouble);
  };
  const at::Tensor x = read(a);
  const at::Tensor y = read(b);
  const double floor = std::max(y.abs().nan_to_num(0, 0, 0).max().item<double>() / 16, 1e-30);
  const at::Tensor apart =
      x.sub(y).abs().div(x.abs().maximum(y.abs()).clamp_min(floor)).div(LastPlaceOf(type));
  const at::Tensor equal = x.eq(y).logical_or(x.isnan().logical_and(y.isnan()));
  return apart.masked_fill(equal, 0).nan_to_num(INFINITY).max().item<double>();
}

}  // namespace tritonrl::device
