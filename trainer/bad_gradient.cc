#include "trainer/bad_gradient.h"

#include <ATen/ops/isinf.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/nan_to_num.h>

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr int kMostFiles = 16;

nlohmann::json BadParameters(const Gradients& gradients) {
  nlohmann::json found = nlohmann::json::array();
  for (const ParameterInfo& info : gradients.layout().parameters) {
    const at::Tensor& gradient = gradients.Get(info.name);
    const int64_t nan = at::isnan(gradient).sum().item<int64_t>();
    const int64_t infinite = at::isinf(gradient).sum().item<int64_t>();
    if (nan + infinite == 0) continue;
    const double largest = at::nan_to_num(gradient, 0.0, 0.0, 0.0).abs().max().item<double>();
    found.push_back({{"name", info.name},
                     {"elements", info.size},
                     {"nan", nan},
                     {"infinite", infinite},
                     {"largest_finite", largest}});
  }
  return found;
}

// The file's path; an empty one where there are enough.
absl::StatusOr<std::string> Write(const std::string& folder, int64_t update, int rank,
                                  const Gradients& gradients, const nlohmann::json& sequences) {
  RETURN_IF_ERROR(CreateDirectories(folder));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
  const std::string ending = absl::StrCat("_rank_", rank, ".json");
  int files = 0;
  for (const std::string& name : names) files += absl::EndsWith(name, ending) ? 1 : 0;
  if (files >= kMostFiles) return std::string();
  const std::string path = JoinPath(folder, absl::StrFormat("update_%06d%s", update, ending));
  const nlohmann::json text = {{"update", update},
                               {"rank", rank},
                               {"parameters", BadParameters(gradients)},
                               {"sequences", sequences}};
  RETURN_IF_ERROR(WriteFileAtomic(path, text.dump() + "\n"));
  return path;
}

}  // namespace

std::string KeepBadGradient(const std::string& folder, int64_t update, int rank,
                            const Gradients& gradients, const nlohmann::json& sequences) {
  const absl::StatusOr<std::string> path = Write(folder, update, rank, gradients, sequences);
  if (!path.ok()) return absl::StrCat("it could not be kept: ", Message(path.status()));
  if (path->empty()) return absl::StrCat(folder, " has enough of them already");
  return absl::StrCat("kept in ", *path, " (and one file for each other rank)");
}

}  // namespace tritonrl
