// tt.dot. The accumulator has the format of the result; f16 and bf16 ones are rounded once, when
// all products are added, while a tensor core may round them more often. tf32 cuts the operands'
// mantissas off at 10 bits, as the hardware does with floats that nobody rounded before. The modes
// with three or six products (tf32x3, bf16x3, bf16x6) are computed in fp32, which is closer to the
// exact result than they are. Products of f16, bf16, fp8 and tf32 are exact; integers wrap around.
//
// A tensor core of sm_90 adds f16, bf16 (tf32) numbers in groups of 16 (8): it cuts each product
// and the accumulator off below 2^-25 of the power of two of the largest, and the sum to a float.
// In this order, rounded after each addition, a group's sum differs by less than 2^-19 of its
// largest partial sum or product; to do as the core does takes more than twice as long. fp8 numbers
// are added as the core does, which keeps 13 bits of them (kernels/fp8_dot_kernels.cc), where
// Triton 3.6 uses wgmma for them (IsFp8WarpGroup). Elsewhere it converts them to f16.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/status.h"
#include "exec/ttir/run/builder.h"
#include "exec/ttir/run/checker.h"
#include "exec/ttir/run/marks.h"

namespace tritonrl::ttir {

namespace {

struct DotData : StepData {
  DotKernel kernel = nullptr;
  DotShape shape;
  int64_t batches = 1;
  int operand_bytes = 0;
  int result_bytes = 0;
  void (*truncate)(float*, const float*, int64_t) = nullptr;
};

struct Fp8DotData : DotData {
  void (*add_group)(float*, const float*, const float*, const Fp8DotShape&) = nullptr;
  Fp8DotShape fp8;
  int64_t chunk = 0;  // of k, whose sum starts at 0 and is added to the rest as floats; 0: none
};

// An element of the result is bad if one of its row of a, of its column of b, or it was.
void MarkDot(const Step& step, const Program& program) {
  const auto& data = static_cast<const DotData&>(*step.data);
  const auto [m, n, k] = data.shape;
  Marks& marks = program.check->marks();
  const MarkedElements a(program, step.in[0], data.operand_bytes);
  const MarkedElements b(program, step.in[1], data.operand_bytes);
  const MarkedElements c(program, step.in[2], data.result_bytes);
  const MarkedElements out(program, step.out[0], data.result_bytes);
  for (int64_t batch = 0; batch < data.batches; ++batch) {
    std::vector<Mark> rows(static_cast<size_t>(m));
    std::vector<Mark> columns(static_cast<size_t>(n));
    for (int64_t l = 0; l < k; ++l) {
      for (int64_t i = 0; i < m; ++i) {
        Mark& row = rows[static_cast<size_t>(i)];
        row = marks.Join(row, a[(batch * m + i) * k + l]);
      }
      for (int64_t j = 0; j < n; ++j) {
        Mark& column = columns[static_cast<size_t>(j)];
        column = marks.Join(column, b[(batch * k + l) * n + j]);
      }
    }
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const int64_t at = (batch * m + i) * n + j;
        out.Set(at, marks.Join(c[at], marks.Join(rows[static_cast<size_t>(i)],
                                                 columns[static_cast<size_t>(j)])));
      }
    }
  }
}

// in: a, b, c; out: result, truncated a and b if they are needed.
bool RunDot(const Step& step, Program& program) {
  const auto& data = static_cast<const DotData&>(*step.data);
  const DotShape& shape = data.shape;
  if (program.marks != nullptr) MarkDot(step, program);
  std::byte* const out = program.At<std::byte>(step.out[0]);
  const int64_t results = data.batches * shape.m * shape.n;
  if (step.out[0] != step.in[2]) {
    std::memcpy(out, program.At<std::byte>(step.in[2]),
                static_cast<size_t>(results * data.result_bytes));
  }
  const std::byte* operands[2];
  const int64_t sizes[2] = {shape.m * shape.k, shape.k * shape.n};
  for (size_t side = 0; side < 2; ++side) {
    operands[side] = program.At<std::byte>(step.in[side]);
    if (data.truncate == nullptr) continue;
    float* const truncated = program.At<float>(step.out[1 + side]);
    data.truncate(truncated, program.At<float>(step.in[side]), data.batches * sizes[side]);
    operands[side] = reinterpret_cast<const std::byte*>(truncated);
  }
  for (int64_t batch = 0; batch < data.batches; ++batch) {
    data.kernel(out + batch * shape.m * shape.n * data.result_bytes,
                operands[0] + batch * sizes[0] * data.operand_bytes,
                operands[1] + batch * sizes[1] * data.operand_bytes, shape);
  }
  if (step.finish != nullptr) step.finish(out, out, results);
  return true;
}

// in: a, b, c; out: result, the sum of a chunk if there are chunks.
bool RunFp8Dot(const Step& step, Program& program) {
  const auto& data = static_cast<const Fp8DotData&>(*step.data);
  const DotShape& shape = data.shape;
  if (program.marks != nullptr) MarkDot(step, program);
  const auto results = static_cast<size_t>(shape.m * shape.n);
  const float* const a = program.At<float>(step.in[0]);
  const float* const b = program.At<float>(step.in[1]);
  float* const out = program.At<float>(step.out[0]);
  if (step.out[0] != step.in[2]) {
    std::memcpy(out, program.At<float>(step.in[2]), results * sizeof(float));
  }
  Fp8DotShape fp8 = data.fp8;
  if (data.chunk == 0) {
    data.add_group(out, a, b, fp8);
    return true;
  }
  float* const partial = program.At<float>(step.out[1]);
  for (fp8.begin = 0; fp8.begin < shape.k; fp8.begin = fp8.end) {
    fp8.end = std::min(fp8.begin + data.chunk, shape.k);
    std::memset(partial, 0, results * sizeof(float));
    data.add_group(partial, a, b, fp8);
    for (size_t i = 0; i < results; ++i) out[i] += partial[i];
  }
  return true;
}

bool IsHopperFp8(const Type& type) {
  return type.is(ScalarKind::kF8E4M3FN) || type.is(ScalarKind::kF8E5M2);
}

// Whether Triton 3.6 makes wgmma of a dot of fp8 numbers on sm_90, as long as `num_warps`, which is
// not known here, is a multiple of 4. Sums of f16 are left to the other way.
bool IsFp8WarpGroup(const Type& a, const Type& b, const Type& c, int64_t imprecise) {
  return IsHopperFp8(a) && IsHopperFp8(b) && c.is(ScalarKind::kF32) && c.rank() == 2 &&
         c.dim(0) % 64 == 0 && c.dim(1) % 8 == 0 && a.dim(1) % 32 == 0 && imprecise >= 32;
}

}  // namespace

absl::Status Builder::BuildFp8Dot(const Operation& operation) {
  const Type& a = TypeOf(operation.operands[0]);
  const Type& b = TypeOf(operation.operands[1]);
  const Type& c = TypeOf(operation.operands[2]);
  auto data = std::make_shared<Fp8DotData>();
  data->shape = {c.dim(0), c.dim(1), a.dim(1)};
  data->operand_bytes = data->result_bytes = sizeof(float);
  data->add_group = kernels_.dot_fp8;
  data->fp8 = {data->shape, 0, a.dim(1), {}};
  for (int side = 0; side < 2; ++side) {
    const bool is_e4m3 = (side == 0 ? a : b).is(ScalarKind::kF8E4M3FN);
    data->fp8.least_exponents[side] = is_e4m3 ? -6 : -14;
  }
  Step step;
  step.run = RunFp8Dot;
  step.cost = data->shape.m * data->shape.n * data->shape.k / 8 + 1;
  step.in_place = InPlace::kThirdOperand;
  step.marking.crosses_threads = true;
  for (const ValueId value : operation.operands) step.in.push_back(SpreadValue(value).buffer);
  step.out = {NewBuffer(c)};
  const int32_t result = step.out[0];
  const int64_t imprecise = operation.attributes.max_imprecise_acc;
  if (imprecise <= data->shape.k) {
    data->chunk = (imprecise + 31) / 32 * 32;
    step.out.push_back(NewBuffer(c));
  }
  step.data = std::move(data);
  Emit(std::move(step));
  Bind(operation.results[0], {result, false, false});
  return absl::OkStatus();
}

absl::Status Builder::BuildDot(const Operation& operation) {
  const Type& a = TypeOf(operation.operands[0]);
  const Type& b = TypeOf(operation.operands[1]);
  const Type& c = TypeOf(operation.operands[2]);
  if (IsFp8WarpGroup(a, b, c, operation.attributes.max_imprecise_acc)) {
    return BuildFp8Dot(operation);
  }
  const int rank = a.rank();
  auto data = std::make_shared<DotData>();
  data->shape = {a.dim(rank - 2), b.dim(rank - 1), a.dim(rank - 1)};
  data->batches = rank == 3 ? a.dim(0) : 1;
  data->operand_bytes = LaneBytes(LaneOf(a));
  data->result_bytes = LaneBytes(LaneOf(c));
  if (LaneOf(a) == LaneOf(b)) data->kernel = kernels_.dot(LaneOf(a), LaneOf(c));
  if (data->kernel == nullptr) return NotExecutable(operation);
  Step step;
  step.run = RunDot;
  step.cost = data->batches * data->shape.m * data->shape.n * data->shape.k / 16 + 1;
  step.finish = RoundingOf(c);
  step.in_place = InPlace::kThirdOperand;
  step.marking.crosses_threads = true;
  for (const ValueId value : operation.operands) step.in.push_back(SpreadValue(value).buffer);
  step.out = {NewBuffer(c)};
  const int32_t result = step.out[0];
  if (operation.attributes.precision == InputPrecision::kTf32 && a.is(ScalarKind::kF32)) {
    data->truncate = kernels_.truncate_tf32;
    step.out.push_back(NewBuffer(a));
    step.out.push_back(NewBuffer(b));
  }
  step.data = std::move(data);
  Emit(std::move(step));
  Bind(operation.results[0], {result, false, false});
  return absl::OkStatus();
}

}  // namespace tritonrl::ttir
