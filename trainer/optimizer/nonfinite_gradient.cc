#include "trainer/optimizer/nonfinite_gradient.h"

#include <ATen/ops/isinf.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/nan_to_num.h>

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr int kMaxFiles = 16;

nlohmann::json BadParameters(const AdamW& optimizer, const Gradients& gradients) {
  nlohmann::json found = nlohmann::json::array();
  for (const ParameterInfo& info : gradients.layout().parameters) {
    const std::vector<at::Tensor> parts = optimizer.sharded()
                                              ? optimizer.ReducedGradientShards(info)
                                              : std::vector<at::Tensor>{gradients.Get(info.name)};
    int64_t elements = 0, nan = 0, infinite = 0;
    for (const at::Tensor& part : parts) {
      elements += part.numel();
      nan += at::isnan(part).sum().item<int64_t>();
      infinite += at::isinf(part).sum().item<int64_t>();
    }
    if (nan + infinite == 0) continue;
    double largest = 0;
    for (const at::Tensor& part : parts) {
      largest = std::max(largest, at::nan_to_num(part, 0.0, 0.0, 0.0).abs().max().item<double>());
    }
    found.push_back({{"name", info.name},
                     {"elements", elements},
                     {"nan", nan},
                     {"infinite", infinite},
                     {"largest_finite", largest}});
  }
  return found;
}

// Returns the file's path, or "" if the folder already holds kMaxFiles of this rank.
absl::StatusOr<std::string> Write(const std::string& folder, int64_t update, const AdamW& optimizer,
                                  const Gradients& gradients, const nlohmann::json& sequences) {
  RETURN_IF_ERROR(CreateDirectories(folder));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
  const std::string ending = absl::StrCat("_rank_", optimizer.rank(), ".json");
  int files = 0;
  for (const std::string& name : names) files += absl::EndsWith(name, ending) ? 1 : 0;
  if (files >= kMaxFiles) return std::string();
  const std::string path = JoinPath(folder, absl::StrFormat("update_%06d%s", update, ending));
  const nlohmann::json text = {
      {"update", update},
      {"rank", optimizer.rank()},
      {"gradient", optimizer.sharded() ? "this rank's shard after the reduce-scatter"
                                       : "of this rank, not reduced"},
      {"parameters", BadParameters(optimizer, gradients)},
      {"sequences", sequences}};
  RETURN_IF_ERROR(WriteFileAtomic(path, text.dump() + "\n"));
  return path;
}

}  // namespace

std::string DumpNonFiniteGradient(const std::string& folder, int64_t update, const AdamW& optimizer,
                                  const Gradients& gradients, const nlohmann::json& sequences) {
  const absl::StatusOr<std::string> path = Write(folder, update, optimizer, gradients, sequences);
  if (!path.ok()) return absl::StrCat("it could not be kept: ", Message(path.status()));
  if (path->empty()) return absl::StrCat(folder, " has enough of them already");
  return absl::StrCat("kept in ", *path, " (and one file for each other rank)");
}

}  // namespace tritonrl
