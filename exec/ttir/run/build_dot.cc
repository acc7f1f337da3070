// tt.dot. The accumulator has the format of the result; f16 and bf16 ones are rounded once, when
// all products are added, while a tensor core may round them more often. tf32 cuts the operands'
// mantissas off at 10 bits, as the hardware does with floats that nobody rounded before. The modes
// with three or six products (tf32x3, bf16x3, bf16x6) are computed in fp32, which is closer to the
// exact result than they are. Products of f16, bf16, fp8 and tf32 are exact; integers wrap around.
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

}  // namespace

absl::Status Builder::BuildDot(const Operation& operation) {
  const Type& a = TypeOf(operation.operands[0]);
  const Type& b = TypeOf(operation.operands[1]);
  const Type& c = TypeOf(operation.operands[2]);
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
