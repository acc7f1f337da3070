// tt.dot_scaled: operands of 4, 8 or 16 bits, of which groups along k share a scale. The products
// with the scales are floats, and the sums are those of tt.dot.
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "base/status.h"
#include "exec/ttir/run/builder.h"
#include "exec/ttir/run/checker.h"
#include "exec/ttir/run/marks.h"

namespace tritonrl::ttir {

namespace {

// One operand as a matrix [rows][columns] of floats.
struct ScaledSide {
  int64_t rows = 0;
  int64_t columns = 0;
  bool k_is_column = true;     // of a; of b it is the row
  bool is_packed = false;      // two e2m1 numbers in a byte, the first in its low half
  bool packs_columns = false;  // the two are neighbours in a row
  Unary decode = nullptr;      // of bytes; nullptr: the lanes are floats
  int64_t groups = 0;          // of the scale in each row of it; 0: there is none
  bool is_exponent = true;     // the scale is a biased exponent, else a float
};

struct ScaledDotData : StepData {
  DotKernel kernel = nullptr;
  DotShape shape;
  ScaledSide sides[2];
};

// e2m1: a sign, and one of 0, 0.5, 1, 1.5, 2, 3, 4, 6.
float DecodeFour(uint32_t bits) {
  constexpr float kValues[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  const float magnitude = kValues[bits & 7];
  return (bits & 8) != 0 ? -magnitude : magnitude;
}

// e8m0: 2^(bits - 127), or NaN.
float DecodeExponent(uint8_t bits) {
  if (bits == 0xFF) return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>(bits == 0 ? 0x00400000u : uint32_t{bits} << 23);
}

void Unpack(const ScaledSide& side, const uint8_t* bytes, float* out) {
  const int64_t row_bytes = side.packs_columns ? side.columns / 2 : side.columns;
  for (int64_t i = 0; i < side.rows; ++i) {
    const uint8_t* const row = bytes + (side.packs_columns ? i : i / 2) * row_bytes;
    for (int64_t j = 0; j < side.columns; ++j) {
      const uint32_t both = row[side.packs_columns ? j / 2 : j];
      const bool second = ((side.packs_columns ? j : i) & 1) != 0;
      *out++ = DecodeFour(second ? both >> 4 : both);
    }
  }
}

// scale: [rows of a or columns of b][groups]
void Scale(const ScaledSide& side, const Program& program, int32_t scale, float* values) {
  const int64_t k = side.k_is_column ? side.columns : side.rows;
  const int64_t group = k / side.groups;
  for (int64_t i = 0; i < side.rows; ++i) {
    for (int64_t j = 0; j < side.columns; ++j) {
      const int64_t at =
          side.k_is_column ? i * side.groups + j / group : j * side.groups + i / group;
      const float factor = side.is_exponent ? DecodeExponent(program.At<uint8_t>(scale)[at])
                                            : program.At<float>(scale)[at];
      *values++ *= factor;
    }
  }
}

// All of the result is bad if an element of an operand is.
void MarkScaledDot(const Step& step, const Program& program) {
  const auto& data = static_cast<const ScaledDotData&>(*step.data);
  Marks& marks = program.check->marks();
  Mark all = 0;
  for (size_t s = 0; s < 2; ++s) {
    const ScaledSide& side = data.sides[s];
    const bool is_byte = side.is_packed || side.decode != nullptr;
    const MarkedElements operand(program, step.in[s], is_byte ? 1 : 4);
    const int64_t count = side.rows * side.columns / (side.is_packed ? 2 : 1);
    for (int64_t i = 0; i < count; ++i) all = marks.Join(all, operand[i]);
    const MarkedElements scale(program, step.in[3 + s], side.is_exponent ? 1 : 4);
    const int64_t scales = side.groups * (side.k_is_column ? side.rows : side.columns);
    for (int64_t i = 0; i < scales; ++i) all = marks.Join(all, scale[i]);
  }
  const MarkedElements c(program, step.in[2], 4);
  const MarkedElements out(program, step.out[0], 4);
  for (int64_t i = 0; i < data.shape.m * data.shape.n; ++i) out.Set(i, marks.Join(c[i], all));
}

// in: a, b, c, scale of a or none, scale of b or none; out: result, a and b as floats.
bool RunScaledDot(const Step& step, Program& program) {
  const auto& data = static_cast<const ScaledDotData&>(*step.data);
  if (program.marks != nullptr) MarkScaledDot(step, program);
  for (size_t s = 0; s < 2; ++s) {
    const ScaledSide& side = data.sides[s];
    const std::byte* const from = program.At<std::byte>(step.in[s]);
    float* const to = program.At<float>(step.out[1 + s]);
    const int64_t count = side.rows * side.columns;
    if (side.is_packed) {
      Unpack(side, reinterpret_cast<const uint8_t*>(from), to);
    } else if (side.decode != nullptr) {
      side.decode(to, from, count);
    } else {
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
    }
    if (side.groups > 0) Scale(side, program, step.in[3 + s], to);
  }
  float* const out = program.At<float>(step.out[0]);
  const int64_t results = data.shape.m * data.shape.n;
  if (step.out[0] != step.in[2]) {
    std::memcpy(out, program.At<float>(step.in[2]), static_cast<size_t>(results) * sizeof(float));
  }
  data.kernel(out, program.At<float>(step.out[1]), program.At<float>(step.out[2]), data.shape);
  if (step.finish != nullptr) step.finish(out, out, results);
  return true;
}

// Whether the operand's numbers can be decoded.
bool FindDecoding(const KernelSet& kernels, ScaledElement element, const Type& type,
                  ScaledSide* side) {
  const bool is_byte = type.is(ScalarKind::kI8);
  switch (element) {
    case ScaledElement::kE2M1:
      side->is_packed = true;
      return is_byte;
    case ScaledElement::kE4M3:
      if (is_byte) side->decode = kernels.decode(ScalarKind::kF8E4M3FN);
      return is_byte || type.is(ScalarKind::kF8E4M3FN);
    case ScaledElement::kE5M2:
      if (is_byte) side->decode = kernels.decode(ScalarKind::kF8E5M2);
      return is_byte || type.is(ScalarKind::kF8E5M2);
    case ScaledElement::kBF16:
      return type.is(ScalarKind::kBF16);
    case ScaledElement::kFP16:
      return type.is(ScalarKind::kF16);
    default:
      return false;
  }
}

}  // namespace

absl::Status Builder::BuildScaledDot(const Operation& operation) {
  const Attributes& attributes = operation.attributes;
  const Type& c = TypeOf(operation.operands[2]);
  auto data = std::make_shared<ScaledDotData>();
  data->kernel = kernels_.dot(Lane::kF32, LaneOf(c));
  if (data->kernel == nullptr) return NotExecutable(operation);
  const bool packs_k[2] = {attributes.has(kLeftKPack), attributes.has(kRightKPack)};
  const bool has_scale[2] = {attributes.has(kLeftScale), attributes.has(kRightScale)};
  const ScaledElement elements[2] = {attributes.left_element, attributes.right_element};
  Step step;
  for (size_t i = 0; i < 3; ++i) step.in.push_back(SpreadValue(operation.operands[i]).buffer);
  step.out = {NewBuffer(c)};
  size_t next = 3;
  for (size_t s = 0; s < 2; ++s) {
    const Type& type = TypeOf(operation.operands[s]);
    ScaledSide& side = data->sides[s];
    side.k_is_column = s == 0;
    if (!FindDecoding(kernels_, elements[s], type, &side)) return NotExecutable(operation);
    side.packs_columns = packs_k[s] == side.k_is_column;
    side.rows = type.dim(0) * (side.is_packed && !side.packs_columns ? 2 : 1);
    side.columns = type.dim(1) * (side.is_packed && side.packs_columns ? 2 : 1);
    step.in.push_back(kNoBuffer);
    if (has_scale[s]) {
      const ValueId scale = operation.operands[next++];
      side.groups = TypeOf(scale).dim(1);
      side.is_exponent = TypeOf(scale).is(ScalarKind::kI8);
      if (!side.is_exponent && !TypeOf(scale).is(ScalarKind::kF8E4M3FN)) {
        return NotExecutable(operation);
      }
      step.in.back() = SpreadValue(scale).buffer;
    }
    step.out.push_back(NewBuffer(side.rows * side.columns * 4, CurrentDepth()));
  }
  data->shape = {c.dim(0), c.dim(1), data->sides[0].columns};
  step.run = RunScaledDot;
  step.cost = data->shape.m * data->shape.n * data->shape.k / 16 + 1;
  step.finish = RoundingOf(c);
  step.in_place = InPlace::kThirdOperand;
  step.marking.crosses_threads = true;
  step.data = std::move(data);
  const int32_t result = step.out[0];
  Emit(std::move(step));
  Bind(operation.results[0], {result, false, false});
  return absl::OkStatus();
}

}  // namespace tritonrl::ttir
