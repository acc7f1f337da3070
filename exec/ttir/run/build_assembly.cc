// tt.elementwise_inline_asm. A program of PTX (ptx/program.h) runs for each group of as many
// elements, one after the other, as the operation packs. Elements of less than 32 bits share
// registers of up to 32, the first in the lowest bits, as Triton's lowering has them. On a GPU the
// elements of a group are of one thread; they are neighbours here.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "base/status.h"
#include "exec/ttir/run/builder.h"
#include "exec/ttir/run/checker.h"
#include "exec/ttir/run/marks.h"
#include "exec/ttir/run/ptx/program.h"

namespace tritonrl::ttir {

namespace {

// A buffer of elements as they are in memory, and its registers.
struct AssemblyValue {
  size_t first = 0;     // register
  int bytes = 0;        // of an element
  int log2_shared = 0;  // of the elements in a register
};

struct AssemblyData : StepData {
  explicit AssemblyData(ptx::Program p) : program(std::move(p)) {}
  ptx::Program program;
  int64_t packed = 1;
  std::vector<AssemblyValue> results;
  std::vector<AssemblyValue> operands;
};

template <typename T>
void Load(const std::byte* from, const AssemblyValue& value, int64_t count, uint64_t* registers) {
  for (int64_t i = 0; i < count; ++i) {
    T bits;
    std::memcpy(&bits, from + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    const int64_t within = i & ((int64_t{1} << value.log2_shared) - 1);
    registers[value.first + static_cast<size_t>(i >> value.log2_shared)] |=
        static_cast<uint64_t>(bits) << (8 * static_cast<int64_t>(sizeof(T)) * within);
  }
}

template <typename T>
void Store(const uint64_t* registers, const AssemblyValue& value, int64_t count, std::byte* to) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t within = i & ((int64_t{1} << value.log2_shared) - 1);
    const uint64_t all = registers[value.first + static_cast<size_t>(i >> value.log2_shared)];
    const auto bits = static_cast<T>(all >> (8 * static_cast<int64_t>(sizeof(T)) * within));
    std::memcpy(to + i * static_cast<int64_t>(sizeof(T)), &bits, sizeof(T));
  }
}

template <typename Body>
void WithType(int bytes, Body body) {
  if (bytes == 1) return body(uint8_t{});
  if (bytes == 2) return body(uint16_t{});
  return bytes == 4 ? body(uint32_t{}) : body(uint64_t{});
}

// Results are bad if an operand's element of their group is.
void MarkGroup(const Step& step, const Program& program, int64_t first, int64_t count) {
  const auto& data = static_cast<const AssemblyData&>(*step.data);
  Mark all = 0;
  for (size_t k = 0; k < step.in.size(); ++k) {
    const MarkedElements marks(program, step.in[k], data.operands[k].bytes);
    for (int64_t i = 0; i < count; ++i) all = program.check->marks().Join(all, marks[first + i]);
  }
  for (size_t k = 0; k < step.out.size(); ++k) {
    const MarkedElements marks(program, step.out[k], data.results[k].bytes);
    for (int64_t i = 0; i < count; ++i) marks.Set(first + i, all);
  }
}

bool RunAssembly(const Step& step, Program& program) {
  const auto& data = static_cast<const AssemblyData&>(*step.data);
  const std::vector<uint64_t>& initial = data.program.registers();
  std::vector<uint64_t> registers;
  for (int64_t first = 0; first < step.count; first += data.packed) {
    const int64_t count = std::min(data.packed, step.count - first);
    registers = initial;
    for (size_t k = 0; k < step.in.size(); ++k) {
      const AssemblyValue& value = data.operands[k];
      const std::byte* const from = program.At<std::byte>(step.in[k]) + first * value.bytes;
      WithType(value.bytes,
               [&](auto type) { Load<decltype(type)>(from, value, count, registers.data()); });
    }
    data.program.Run(registers.data());
    for (size_t k = 0; k < step.out.size(); ++k) {
      const AssemblyValue& value = data.results[k];
      std::byte* const to = program.At<std::byte>(step.out[k]) + first * value.bytes;
      WithType(value.bytes,
               [&](auto type) { Store<decltype(type)>(registers.data(), value, count, to); });
    }
    if (program.marks != nullptr) MarkGroup(step, program, first, count);
    program.work += 8 * data.program.size() + static_cast<int64_t>(registers.size()) + count;
    if (program.work > kWorkPerQuestion && !AskForTime(step, program)) return false;
  }
  return true;
}

// False: the type has no registers, as pointers and truth values.
bool AddValue(const Type& type, int64_t packed, std::vector<int>* bits,
              std::vector<AssemblyValue>* values) {
  const int width = type.is_pointer() ? 0 : type.bit_width();
  if (width < 8 || bits->size() > ptx::Program::kMaxRegisters) return false;
  AssemblyValue value;
  value.bytes = width / 8;
  value.first = ptx::Program::kFirstOperand + bits->size();
  const auto shared = static_cast<uint64_t>(std::min<int64_t>(std::max(32 / width, 1), packed));
  if (!std::has_single_bit(shared) || static_cast<uint64_t>(packed) % shared != 0) return false;
  value.log2_shared = std::countr_zero(shared);
  bits->insert(bits->end(), static_cast<size_t>(packed) / shared, width * static_cast<int>(shared));
  values->push_back(value);
  return true;
}

}  // namespace

absl::Status Builder::BuildAssembly(const Operation& operation) {
  const Attributes& attributes = operation.attributes;
  const int64_t packed = attributes.packed_elements;
  std::vector<AssemblyValue> results;
  std::vector<AssemblyValue> operands;
  std::vector<int> bits;
  for (const ValueId value : operation.results) {
    if (!AddValue(TypeOf(value), packed, &bits, &results)) return NotExecutable(operation, "types");
  }
  const auto written = static_cast<int>(bits.size());
  for (const ValueId value : operation.operands) {
    const bool is_lanes = At(value).lanes;
    if (is_lanes || !AddValue(TypeOf(value), packed, &bits, &operands)) {
      return NotExecutable(operation, "types");
    }
  }
  absl::StatusOr<ptx::Program> program =
      ptx::Program::Parse(attributes.text, attributes.constraints, bits, written);
  if (!program.ok()) return NotExecutable(operation, program.status().message());
  auto data = std::make_shared<AssemblyData>(*std::move(program));
  data->packed = packed;
  data->results = std::move(results);
  data->operands = std::move(operands);
  const Type& shape = TypeOf(operation.results[0]);
  Step step;
  step.run = RunAssembly;
  step.count = shape.elements();
  step.cost = 1;  // RunAssembly adds the rest
  for (const ValueId value : operation.operands) {
    const Type& type = TypeOf(value);
    Bound bound = SpreadValue(value);
    const Unary encode = type.is_float() ? kernels_.encode(type.element()) : nullptr;
    if (encode != nullptr) {
      bound =
          EmitUnary(encode, nullptr, bound,
                    type.WithElement(type.bit_width() == 8 ? ScalarKind::kI8 : ScalarKind::kI16));
    }
    step.in.push_back(bound.buffer);
  }
  for (const AssemblyValue& value : data->results) {
    step.out.push_back(NewBuffer(shape.elements() * value.bytes, CurrentDepth()));
  }
  const std::vector<int32_t> raw = step.out;
  // Its instructions are counted as operations, whatever they are.
  if (counts_work_) {
    const int64_t groups = (shape.elements() + packed - 1) / packed;
    containers_.back().code->work.flops += data->program.size() * groups;
  }
  step.data = std::move(data);
  Emit(std::move(step));
  for (size_t i = 0; i < raw.size(); ++i) {
    const Type& type = TypeOf(operation.results[i]);
    const Bound bound{raw[i], !type.is_tensor(), false};
    const Unary decode = type.is_float() ? kernels_.decode(type.element()) : nullptr;
    Bind(operation.results[i], decode == nullptr ? bound : EmitUnary(decode, nullptr, bound, type));
  }
  return absl::OkStatus();
}

}  // namespace tritonrl::ttir
