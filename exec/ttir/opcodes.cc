#include "exec/ttir/opcodes.h"

#include "absl/container/flat_hash_map.h"

namespace tritonrl::ttir {

namespace {

constexpr OpcodeInfo kOpcodes[] = {
#define TRITONRL_TTIR_ROW(enumerator, name, syntax, results, regions, rule) \
  {Opcode::k##enumerator, name, syntax, results, regions, Rule::rule},
    TRITONRL_TTIR_OPERATIONS(TRITONRL_TTIR_ROW)
#undef TRITONRL_TTIR_ROW
};

}  // namespace

const OpcodeInfo& InfoOf(Opcode opcode) { return kOpcodes[static_cast<int>(opcode)]; }

std::optional<Opcode> FindOpcode(absl::string_view name) {
  static const auto* const kByName = [] {
    auto* map = new absl::flat_hash_map<absl::string_view, Opcode>();
    for (const OpcodeInfo& info : kOpcodes) map->emplace(info.name, info.opcode);
    return map;
  }();
  const auto found = kByName->find(name);
  if (found == kByName->end()) return std::nullopt;
  return found->second;
}

bool IsTerminator(Opcode opcode) {
  switch (opcode) {
    case Opcode::kReturn:
    case Opcode::kReduceReturn:
    case Opcode::kScanReturn:
    case Opcode::kMapReturn:
    case Opcode::kYield:
    case Opcode::kCondition:
    case Opcode::kBranch:
    case Opcode::kCondBranch:
      return true;
    default:
      return false;
  }
}

}  // namespace tritonrl::ttir
