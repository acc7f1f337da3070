#include "trainer/learner/gradient_accumulator.h"

#include <c10/util/Exception.h>

#include <span>
#include <vector>

#include "base/status.h"

namespace tritonrl {

absl::Status GradientAccumulator::Begin(int64_t micro_batches) {
  mine_ = micro_batches;
  all_ = micro_batches;
  done_ = 0;
  if (!optimizer_->sharded()) return absl::OkStatus();
  double most = static_cast<double>(micro_batches);
  RETURN_IF_ERROR(ranks_->AllReduceMax(std::span<double>(&most, 1)));
  all_ = static_cast<int64_t>(most);
  return absl::OkStatus();
}

ForwardResult GradientAccumulator::Pass(const PackedBatch& batch, const at::Tensor& targets,
                                        double temperature, Transformer::TokenLoss loss) {
  TORCH_CHECK(done_ < mine_, "more micro-batches than announced");
  const bool sharded = optimizer_->sharded();
  const bool replace = sharded || done_ == 0;
  ++done_;
  const bool sum = sharded || done_ == mine_;
  return model_->ForwardBackward(
      batch, targets, temperature, loss,
      replace ? Transformer::GradientWrite::kOverwrite : Transformer::GradientWrite::kAccumulate,
      &gradients_,
      [&](int64_t offset) {
        if (sum) optimizer_->OnGradientsReady(offset, gradients_);
      },
      [&](int64_t offset) { optimizer_->OnGradientOverwrite(offset, gradients_); });
}

void GradientAccumulator::End() {
  TORCH_CHECK(done_ == mine_, "fewer micro-batches than announced");
  if (!optimizer_->sharded()) {
    if (mine_ > 0) return;
    gradients_.Zero();
    // As on the other ranks, whose collectives must match.
    optimizer_->OnGradientsReady(0, gradients_);
    return;
  }
  const std::vector<ParameterPart>& parts = gradients_.layout().parts;
  for (; done_ < all_; ++done_) {
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      optimizer_->OnGradientOverwrite(part->begin, gradients_);
      gradients_.flat().narrow(0, part->begin, part->size()).zero_();
      optimizer_->OnGradientsReady(part->begin, gradients_);
    }
  }
}

}  // namespace tritonrl
