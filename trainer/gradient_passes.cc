#include "trainer/gradient_passes.h"

#include <c10/util/Exception.h>

#include <span>
#include <utility>
#include <vector>

#include "base/status.h"

namespace tritonrl {

ForwardResult GradientPasses::EarlyPass(const PackedBatch& batch, const at::Tensor& targets,
                                        double temperature, Transformer::TokenLoss loss) {
  TORCH_CHECK(!optimizer_->sharded(), "gradients that are sharded have no early passes");
  const auto sum =
      early_ == 0 ? Transformer::GradientSum::kReplace : Transformer::GradientSum::kAdd;
  ++early_;
  return model_->ForwardBackward(batch, targets, temperature, loss, sum, &gradients_);
}

void GradientPasses::ScaleEarly(double factor) {
  if (early_ > 0) at::Tensor(gradients_.flat()).mul_(factor);
}

absl::Status GradientPasses::Begin(int64_t micro_batches) {
  mine_ = micro_batches;
  all_ = micro_batches;
  done_ = 0;
  if (!optimizer_->sharded()) return absl::OkStatus();
  double most = static_cast<double>(micro_batches);
  RETURN_IF_ERROR(ranks_->Max(std::span<double>(&most, 1)));
  all_ = static_cast<int64_t>(most);
  return absl::OkStatus();
}

ForwardResult GradientPasses::Pass(const PackedBatch& batch, const at::Tensor& targets,
                                   double temperature, Transformer::TokenLoss loss) {
  TORCH_CHECK(done_ < mine_, "more micro-batches than were said");
  const bool sharded = optimizer_->sharded();
  const bool replace = sharded || early_ + done_ == 0;
  ++done_;
  const bool sum = sharded || done_ == mine_;
  return model_->ForwardBackward(
      batch, targets, temperature, loss,
      replace ? Transformer::GradientSum::kReplace : Transformer::GradientSum::kAdd, &gradients_,
      [&](int64_t offset) {
        if (sum) optimizer_->GradientsFrom(offset, gradients_);
      },
      [&](int64_t offset) { optimizer_->WriteFrom(offset, gradients_); });
}

void GradientPasses::End() {
  TORCH_CHECK(done_ == mine_, "fewer micro-batches than were said");
  if (!optimizer_->sharded()) {
    const bool empty = std::exchange(early_, 0) == 0;
    if (mine_ > 0) return;
    if (empty) gradients_.Zero();
    optimizer_->GradientsFrom(0, gradients_);  // in the same order of sums as the others
    return;
  }
  const std::vector<ParameterPart>& parts = gradients_.layout().parts;
  for (; done_ < all_; ++done_) {
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      optimizer_->WriteFrom(part->begin, gradients_);
      gradients_.flat().narrow(0, part->begin, part->size()).zero_();
      optimizer_->GradientsFrom(part->begin, gradients_);
    }
  }
}

}  // namespace tritonrl
