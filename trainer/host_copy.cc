#include "trainer/host_copy.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>

namespace tritonrl {

bool HostCopy::Fits(const at::Tensor& source) const {
  if (elements_ != source.numel()) return false;
  return pieces_.empty() ||
         (pieces_[0].scalar_type() == source.scalar_type() && pinned_ == source.is_cuda());
}

void HostCopy::Take(const at::Tensor& source) {
  TORCH_CHECK(source.is_contiguous(), "HostCopy takes contiguous tensors");
  const at::Tensor flat = source.view({-1});
  const int64_t per_piece = piece_bytes_ / static_cast<int64_t>(source.element_size());
  if (!Fits(source)) {
    pieces_.clear();  // before the new ones are allocated
    elements_ = source.numel();
    pinned_ = source.is_cuda();
    const at::TensorOptions options =
        at::TensorOptions(source.scalar_type()).pinned_memory(pinned_);
    for (int64_t begin = 0; begin < elements_; begin += per_piece) {
      pieces_.push_back(at::empty({std::min(per_piece, elements_ - begin)}, options));
    }
  }
  for (size_t i = 0; i < pieces_.size(); ++i) {
    // All copies are in one stream, so waiting for the last one is waiting for all.
    pieces_[i].copy_(flat.narrow(0, static_cast<int64_t>(i) * per_piece, pieces_[i].numel()),
                     /*non_blocking=*/i + 1 < pieces_.size());
  }
}

void HostCopy::CopyTo(const at::Tensor& target) const {
  TORCH_CHECK(target.is_cpu() && target.is_contiguous() && target.numel() == elements_ &&
                  (pieces_.empty() || pieces_[0].scalar_type() == target.scalar_type()),
              "HostCopy::CopyTo needs a tensor like the one taken");
  char* to = static_cast<char*>(target.mutable_data_ptr());
  for (const at::Tensor& piece : pieces_) {
    std::memcpy(to, piece.const_data_ptr(), piece.nbytes());
    to += piece.nbytes();
  }
}

}  // namespace tritonrl
