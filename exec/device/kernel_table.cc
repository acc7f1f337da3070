#include "exec/device/kernel_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status.h"

namespace tritonrl::device {
namespace {

constexpr int64_t kWarp = 32;  // threads

std::string ToString(const KernelOptions& options) {
  return absl::StrCat(options.num_warps, " ", options.num_stages, " ", options.num_ctas, " ",
                      options.maxnreg, " ", options.fp_fusion, options.cooperative, options.pdl);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const LaunchableKernel>> KernelCache::CompileTtir(
    absl::string_view text, const KernelOptions& options) {
  std::string key = Sha256Hex(text);
  if (uses_options()) absl::StrAppend(&key, " ", ToString(options));
  {
    const absl::MutexLock lock(&mutex_);
    const auto found = by_key_.find(key);
    if (found != by_key_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return entries_.front().kernel;
    }
  }
  ASSIGN_OR_RETURN(std::shared_ptr<const LaunchableKernel> kernel,
                   compiler_->CompileTtir(text, options));
  const absl::MutexLock lock(&mutex_);
  if (by_key_.count(key) > 0) return kernel;  // another thread was faster
  entries_.push_front({key, kernel});
  by_key_[key] = entries_.begin();
  if (entries_.size() > max_kernels_) {
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
  return kernel;
}

absl::Status OutOfResource(absl::string_view what, int64_t required, int64_t limit) {
  return absl::InvalidArgumentError(absl::StrCat(
      "out of resource: ", what, ", Required: ", required, ", Hardware limit: ", limit));
}

absl::StatusOr<int64_t> KernelTable::Add(KernelEntry entry, absl::string_view ttir) {
  if (ttir.size() > static_cast<size_t>(limits_.max_ttir_bytes)) {
    return absl::ResourceExhaustedError("a kernel's Triton IR is too long");
  }
  entry.ttir_sha256 = Sha256Hex(ttir);
  const std::string key = absl::StrCat(entry.ttir_sha256, " ", ToString(entry.options), " ",
                                       entry.shared_bytes, " ", entry.name);
  if (const auto found = by_key_.find(key); found != by_key_.end()) return found->second;
  if (entries_.size() >= static_cast<size_t>(limits_.max_kernels)) {
    return absl::ResourceExhaustedError("there are too many kernels");
  }
  if (entry.shared_bytes > limits_.max_shared_bytes) {
    return OutOfResource("shared memory", entry.shared_bytes, limits_.max_shared_bytes);
  }
  if (kWarp * entry.options.num_warps > limits_.max_threads) {
    return OutOfResource("threads", kWarp * entry.options.num_warps, limits_.max_threads);
  }
  ASSIGN_OR_RETURN(entry.kernel, compiler_->CompileTtir(ttir, entry.options));
  const auto number = static_cast<int64_t>(entries_.size());
  entries_.push_back(std::move(entry));
  by_key_[key] = number;
  return number;
}

const KernelEntry* KernelTable::Find(int64_t number) const {
  if (number < 0 || number >= static_cast<int64_t>(entries_.size())) return nullptr;
  return &entries_[number];
}

}  // namespace tritonrl::device
