#include "exec/ttir/run/reduction_steps.h"

#include <cstring>

#include "exec/ttir/run/checker.h"
#include "exec/ttir/run/marks.h"

namespace tritonrl::ttir {

namespace {

void Combine(const Step& step, std::byte* out, const std::byte* left, const std::byte* right,
             int64_t count) {
  step.binary(out, left, right, count);
  if (step.finish != nullptr) step.finish(out, out, count);
}

// Moves elements, and then their marks in the same way.
template <typename Move>
void WithMarks(const Program& program, Move move) {
  move(program.arena);
  if (program.marks != nullptr) move(program.marks);
}

// Of a reduction or a scan with one operation: a result is bad if one of its elements is.
void MarkFast(const Step& step, const Program& program) {
  const auto& data = static_cast<const ReductionData&>(*step.data);
  const AxisShape& shape = data.shape;
  Marks& marks = program.check->marks();
  const MarkedElements in(program, step.in[0], data.bytes[0]);
  const MarkedElements out(program, step.out[0], data.bytes[0]);
  for (int64_t outer = 0; outer < shape.outer; ++outer) {
    for (int64_t inner = 0; inner < shape.inner; ++inner) {
      Mark mark = 0;
      for (int64_t i = 0; i < shape.axis; ++i) {
        const int64_t along = data.is_scan && data.is_reverse ? shape.axis - 1 - i : i;
        const int64_t at = (outer * shape.axis + along) * shape.inner + inner;
        mark = marks.Join(mark, in[at]);
        if (data.is_scan) out.Set(at, mark);
      }
      if (!data.is_scan) out.Set(outer * shape.inner + inner, mark);
    }
  }
}

// The buffers of a region that combines pairs.
class Pairs {
 public:
  Pairs(const Step& step, Program& program)
      : step_(step),
        program_(program),
        data_(static_cast<const ReductionData&>(*step.data)),
        operands_(data_.bytes.size()) {}

  int32_t Work(size_t k) const { return step_.out[operands_ + k]; }

  // Work elements [to, to + count) become the region's results of the pairs that begin at `left`
  // and `right`.
  bool Run(int64_t left, int64_t right, int64_t to, int64_t count) {
    if (data_.is_vector) return RunPart(left, right, to, count);
    // From behind, as a scan's results are operands of pairs before them.
    for (int64_t i = count - 1; i >= 0; --i) {
      if (!RunPart(left + i, right + i, to + i, 1)) return false;
    }
    return true;
  }

 private:
  bool RunPart(int64_t left, int64_t right, int64_t to, int64_t count) {
    for (size_t k = 0; k < operands_; ++k) {
      const auto bytes = static_cast<int64_t>(data_.bytes[k]);
      const auto size = static_cast<size_t>(count * bytes);
      WithMarks(program_, [&](std::byte* arena) {
        const std::byte* const work = arena + Work(k);
        std::memcpy(arena + step_.out[2 * operands_ + k], work + left * bytes, size);
        std::memcpy(arena + step_.out[3 * operands_ + k], work + right * bytes, size);
      });
    }
    program_.lanes = count;
    if (!RunCode(step_.codes[0], program_)) return false;
    for (size_t k = 0; k < operands_; ++k) {
      const int bytes = data_.bytes[k];
      WithMarks(program_, [&](std::byte* arena) {
        MoveElements(bytes, {arena + Work(k) + to * bytes, 1},
                     {arena + step_.in[operands_ + k], data_.uniform_yield[k] ? 0 : 1}, count);
      });
    }
    return true;
  }

  const Step& step_;
  Program& program_;
  const ReductionData& data_;
  size_t operands_;
};

}  // namespace

bool RunFastReduce(const Step& step, Program& program) {
  const auto& data = static_cast<const ReductionData&>(*step.data);
  if (program.marks != nullptr) MarkFast(step, program);
  const AxisShape& shape = data.shape;
  const int64_t bytes = data.bytes[0];
  std::byte* const scratch[2] = {program.At<std::byte>(step.out[1]),
                                 program.At<std::byte>(step.out[2])};
  for (int64_t outer = 0; outer < shape.outer; ++outer) {
    const std::byte* from =
        program.At<std::byte>(step.in[0]) + outer * shape.axis * shape.inner * bytes;
    std::byte* const result = program.At<std::byte>(step.out[0]) + outer * shape.inner * bytes;
    int turn = 0;
    for (int64_t half = shape.axis / 2; half > 0; half /= 2) {
      std::byte* const to = half == 1 ? result : scratch[turn];
      Combine(step, to, from, from + half * shape.inner * bytes, half * shape.inner);
      from = to;
      turn = 1 - turn;
    }
    if (shape.axis == 1) std::memcpy(result, from, static_cast<size_t>(shape.inner * bytes));
  }
  return true;
}

bool RunFastScan(const Step& step, Program& program) {
  const auto& data = static_cast<const ReductionData&>(*step.data);
  if (program.marks != nullptr) MarkFast(step, program);
  const AxisShape& shape = data.shape;
  const int64_t row = shape.inner * data.bytes[0];
  for (int64_t outer = 0; outer < shape.outer; ++outer) {
    const std::byte* const from = program.At<std::byte>(step.in[0]) + outer * shape.axis * row;
    std::byte* const to = program.At<std::byte>(step.out[0]) + outer * shape.axis * row;
    const int64_t first = data.is_reverse ? shape.axis - 1 : 0;
    const int64_t direction = data.is_reverse ? -1 : 1;
    std::memcpy(to + first * row, from + first * row, static_cast<size_t>(row));
    for (int64_t i = 1; i < shape.axis; ++i) {
      const int64_t at = first + i * direction;
      Combine(step, to + at * row, to + (at - direction) * row, from + at * row, shape.inner);
    }
  }
  return true;
}

bool RunReduction(const Step& step, Program& program) {
  const auto& data = static_cast<const ReductionData&>(*step.data);
  const size_t operands = data.bytes.size();
  Pairs pairs(step, program);
  for (size_t k = 0; k < operands; ++k) {
    WithMarks(program, [&](std::byte* arena) {
      data.to_major[k]->Run(arena + pairs.Work(k), arena + step.in[k]);
    });
  }
  const int64_t rest = data.shape.outer * data.shape.inner;
  if (data.is_scan) {
    for (int64_t by = 1; by < data.shape.axis; by *= 2) {
      if (!pairs.Run(0, by * rest, by * rest, (data.shape.axis - by) * rest)) return false;
    }
  } else {
    for (int64_t half = data.shape.axis / 2; half > 0; half /= 2) {
      if (!pairs.Run(0, half * rest, 0, half * rest)) return false;
    }
  }
  for (size_t k = 0; k < operands; ++k) {
    WithMarks(program, [&](std::byte* arena) {
      if (data.is_scan) {
        data.from_major[k]->Run(arena + step.out[k], arena + pairs.Work(k));
      } else {
        std::memcpy(arena + step.out[k], arena + pairs.Work(k),
                    static_cast<size_t>(rest * data.bytes[k]));
      }
    });
  }
  return true;
}

bool RunMap(const Step& step, Program& program) {
  const auto& data = static_cast<const MapData&>(*step.data);
  const auto pack = static_cast<size_t>(data.pack);
  const size_t operands = data.operand_bytes.size();
  const size_t results = data.result_bytes.size();
  const int64_t count = data.is_vector ? data.groups : 1;
  for (int64_t first = 0; first < data.groups; first += count) {
    for (size_t i = 0; i < operands * pack; ++i) {
      const int bytes = data.operand_bytes[i / pack];
      const int64_t begin = (first * data.pack + static_cast<int64_t>(i % pack)) * bytes;
      WithMarks(program, [&](std::byte* arena) {
        MoveElements(bytes, {arena + step.out[results + i], 1},
                     {arena + step.in[i / pack] + begin, data.pack}, count);
      });
    }
    program.lanes = count;
    if (!RunCode(step.codes[0], program)) return false;
    for (size_t i = 0; i < results * pack; ++i) {
      const int bytes = data.result_bytes[i / pack];
      const int64_t begin = (first * data.pack + static_cast<int64_t>(i % pack)) * bytes;
      WithMarks(program, [&](std::byte* arena) {
        MoveElements(bytes, {arena + step.out[i / pack] + begin, data.pack},
                     {arena + step.in[operands + i], data.uniform_yield[i] ? 0 : 1}, count);
      });
    }
  }
  return true;
}

}  // namespace tritonrl::ttir
