#include "verify/neutral_ops.h"

#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tritonrl {
namespace {

// Names without "aten.".
constexpr absl::string_view kNeutral[] = {
    // Allocation.
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided "
    "_efficientzerotensor "
    "resize_ resize_as_",
    // The same elements under another shape, or one of them read back. Views that their schema
    // calls so need no name here.
    "detach detach_ lift lift_fresh lift_fresh_copy alias _unsafe_view _reshape_alias set_ "
    "squeeze_ unsqueeze_ t_ transpose_ swapaxes_ swapdims_ as_strided_ resolve_conj resolve_neg "
    "_local_scalar_dense item is_nonzero is_same_size is_pinned _pin_memory sym_size sym_stride "
    "sym_numel sym_storage_offset record_stream",
    // Copies and casts.
    "clone copy_ _to_copy to contiguous cat stack repeat constant_pad_nd",
    // Fills with what stands in the program.
    "zeros zeros_like new_zeros ones ones_like new_ones full full_like new_full fill fill_ zero_ "
    "zero scalar_tensor arange linspace logspace range eye tensor",
    // Random numbers.
    "rand rand_like randn randn_like randint randint_like randperm random_ uniform_ normal_ "
    "bernoulli_",
};

using Names = absl::flat_hash_set<absl::string_view>;

const Names& NeutralNames() {
  static const Names* const names = [] {
    auto* all = new Names;
    for (const absl::string_view group : kNeutral) {
      for (const absl::string_view name : absl::StrSplit(group, ' ')) all->insert(name);
    }
    return all;
  }();
  return *names;
}

// Operators of torch and its libraries, as opposed to those of a program.
bool IsLibrarys(absl::string_view name) {
  for (const absl::string_view space :
       {"aten.", "prims.", "quantized.", "mkldnn.", "torchvision.", "sparse."}) {
    if (absl::StartsWith(name, space)) return true;
  }
  return false;
}

}  // namespace

double ScalarElements(const google::protobuf::RepeatedPtrField<AtenOp>& ops) {
  double sum = 0;
  for (const AtenOp& op : ops) {
    absl::string_view name = op.name();
    if (op.view() || !absl::ConsumePrefix(&name, "aten.") || NeutralNames().contains(name))
      continue;
    if (op.largest() <= kScalarElements) sum += op.elements();
  }
  return sum;
}

bool IsNeutralOp(const AtenOp& op) {
  absl::string_view name = op.name();
  // A call without tensors (largest 0) has nothing to compute on.
  const bool small =
      op.calls() > 0 && op.largest() <= kScalarElements && op.elements() <= kMostScalarElements;
  if (absl::StartsWith(name, "python.")) return small;
  if (name == "aten._local_scalar_dense") return op.calls() <= kMostReadBack;
  // Views that change signs.
  if (name == "aten._neg_view" || name == "aten._conj") return small;
  if (!IsLibrarys(name) || op.view() || small) return true;
  return absl::ConsumePrefix(&name, "aten.") && NeutralNames().contains(name);
}

}  // namespace tritonrl
