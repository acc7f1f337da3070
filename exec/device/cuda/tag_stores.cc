#include "exec/device/cuda/tag_stores.h"

#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "exec/ttir/opcodes.h"
#include "exec/ttir/parser.h"

namespace tritonrl::device {
namespace {

using ttir::Function;
using ttir::Opcode;
using ttir::Operation;
using ttir::Region;
using ttir::Type;

constexpr char kPrefix[] = "tritonrl_tag";

template <typename F>
void ForEachOperation(const Region& region, const F& f) {
  for (const ttir::Block& block : region.blocks) {
    for (const Operation& operation : block.operations) {
      f(operation);
      for (const Region& inner : operation.regions) ForEachOperation(inner, f);
    }
  }
}

bool IsStore(const Operation& operation) {
  return operation.opcode == Opcode::kStore || operation.opcode == Opcode::kAtomicRmw ||
         operation.opcode == Opcode::kAtomicCas;
}

ttir::ScalarKind IntegerOf(int64_t bytes) {
  switch (bytes) {
    case 1:
      return ttir::ScalarKind::kI8;
    case 2:
      return ttir::ScalarKind::kI16;
    case 4:
      return ttir::ScalarKind::kI32;
    default:
      return ttir::ScalarKind::kI64;
  }
}

std::string Constant(const std::string& name, int64_t value, const Type& type) {
  const std::string text =
      type.is_tensor() ? absl::StrCat("dense<", value, ">") : absl::StrCat(value);
  return absl::StrCat("%", name, " = arith.constant ", text, " : ", type.ToString(), "\n");
}

// The lines behind one store.
absl::StatusOr<std::string> TagLines(const Function& function, const Operation& operation,
                                     uint8_t tag, int64_t distance, int number) {
  const Type& pointer = function.TypeOf(operation.operands[0]);
  if (!pointer.is_pointer()) {
    return absl::UnimplementedError("a store through a block pointer is not followed");
  }
  const Type pointee = pointer.Pointee();
  const int64_t bytes = pointee.is_pointer() ? 8 : ttir::StorageBytes(pointee.element());
  const ttir::ScalarKind integer = IntegerOf(bytes);
  const Type to = pointer.WithElement(Type::Scalar(integer, 1));
  const Type offset = pointer.WithElement(ttir::ScalarKind::kI64);
  const Type value = pointer.WithElement(integer);
  const std::string base = absl::StrCat(kPrefix, number);
  std::string from = function.values[operation.operands[0]].name;
  std::string lines;
  if (!(to == pointer)) {
    absl::StrAppend(&lines, "%", base, "_p = tt.bitcast %", from, " : ", pointer.ToString(), " -> ",
                    to.ToString(), "\n");
    from = base + "_p";
  }
  uint64_t pattern = 0;
  for (int64_t byte = 0; byte < bytes; ++byte) pattern |= static_cast<uint64_t>(tag) << (8 * byte);
  absl::StrAppend(&lines, Constant(base + "_d", distance / bytes, offset));
  absl::StrAppend(&lines, "%", base, "_a = tt.addptr %", from, ", %", base, "_d : ", to.ToString(),
                  ", ", offset.ToString(), "\n");
  absl::StrAppend(&lines, Constant(base + "_v", static_cast<int64_t>(pattern), value));
  absl::StrAppend(&lines, "tt.store %", base, "_a, %", base, "_v");
  const bool has_mask = operation.opcode != Opcode::kAtomicCas && operation.operands.size() > 2;
  if (has_mask) {
    absl::StrAppend(&lines, ", %", function.values[operation.operands[2]].name);
  }
  absl::StrAppend(&lines, " : ", to.ToString(), "\n");
  return lines;
}

bool IsOurs(const Function& function, const Operation& store) {
  return absl::StartsWith(function.values[store.operands[0]].name, kPrefix);
}

// Whether each store of the program is followed, in its block, by ours before the next one. So no
// text can lead the lines above to another place.
bool EachStoreIsFollowed(const Function& function, const Region& region) {
  for (const ttir::Block& block : region.blocks) {
    bool open = false;
    for (const Operation& operation : block.operations) {
      for (const Region& inner : operation.regions) {
        if (open || !EachStoreIsFollowed(function, inner)) return false;
      }
      if (!IsStore(operation)) continue;
      if (open != IsOurs(function, operation)) return false;
      open = !open;
    }
    if (open) return false;
  }
  return true;
}

}  // namespace

bool StoresThroughDescriptors(const ttir::Module& module) {
  bool found = false;
  for (const Function& function : module.functions) {
    ForEachOperation(function.body, [&](const Operation& operation) {
      found = found || operation.opcode == Opcode::kDescriptorStore ||
              operation.opcode == Opcode::kDescriptorReduce ||
              operation.opcode == Opcode::kDescriptorScatter;
    });
  }
  return found;
}

absl::StatusOr<std::string> TagStores(absl::string_view text, const ttir::Module& module,
                                      uint8_t tag, int64_t distance) {
  if (absl::StrContains(text, kPrefix)) {
    return absl::UnimplementedError("a name of the Triton IR is one of ours");
  }
  std::map<int32_t, int> operations_of_line;
  std::map<int32_t, std::string> after;  // line of the text -> what follows it
  absl::Status status;
  int number = 0;
  for (const Function& function : module.functions) {
    ForEachOperation(function.body, [&](const Operation& operation) {
      ++operations_of_line[operation.text_line];
      if (!IsStore(operation) || !status.ok()) return;
      const auto lines = TagLines(function, operation, tag, distance, number++);
      status = lines.status();
      if (lines.ok()) after[operation.text_line] = *lines;
    });
  }
  RETURN_IF_ERROR(status);
  std::string result;
  int32_t line = 0;
  for (const absl::string_view old : absl::StrSplit(text, '\n')) {
    ++line;
    absl::StrAppend(&result, old, "\n");
    const auto found = after.find(line);
    if (found == after.end()) continue;
    if (operations_of_line[line] != 1) {
      return absl::UnimplementedError("a line of the Triton IR has several operations");
    }
    absl::StrAppend(&result, found->second);
  }
  ASSIGN_OR_RETURN(const ttir::Module tagged, ttir::ParseTtir(result));
  for (const Function& function : tagged.functions) {
    if (!EachStoreIsFollowed(function, function.body)) {
      return absl::UnimplementedError("the stores of the Triton IR cannot be followed");
    }
  }
  return result;
}

}  // namespace tritonrl::device
