#include "rollout/transformer_runner.h"

#include <ATen/core/Tensor.h>

#include <exception>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/packed_batch.h"

namespace tritonrl {
namespace {

// The first line of what LibTorch says; the rest is a stack.
std::string FirstLine(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

// Runs `work`, turning exceptions into a Status that begins with `what`.
template <typename Work>
absl::Status Guard(const char* what, Work work) {
  try {
    work();
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat(what, " ran out of memory"));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat(what, " failed: ", FirstLine(error)));
  }
}

at::Tensor ToHost(const at::Tensor& logits) { return logits.to(at::kCPU, at::kFloat).contiguous(); }

}  // namespace

absl::StatusOr<std::unique_ptr<TransformerRunner>> TransformerRunner::Create(
    std::shared_ptr<Weights> weights, const Options& options) {
  const ModelConfig& config = weights->config();
  const int64_t length = options.max_length > 0 ? options.max_length : config.max_positions;
  if (options.num_slots < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_slots is ", options.num_slots, ", must be 1 or more"));
  }
  if (length > config.max_positions) {
    return absl::InvalidArgumentError(absl::StrCat("max_length is ", length,
                                                   ", but the model's max_position_embeddings is ",
                                                   config.max_positions));
  }
  const int64_t bytes = DecodeCache::Bytes(config, options.num_slots, length, weights->dtype());
  std::unique_ptr<DecodeCache> cache;
  std::unique_ptr<Transformer> transformer;
  const absl::Status made = Guard("the cache", [&] {
    cache = std::make_unique<DecodeCache>(config, options.num_slots, length, weights->device(),
                                          weights->dtype());
    Transformer::Options transformer_options;
    transformer_options.cpu_threads = options.cpu_threads;
    transformer = std::make_unique<Transformer>(config, std::move(weights), transformer_options);
  });
  if (!made.ok()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no room for a cache of ", bytes >> 20, " MiB (", options.num_slots,
                     " slots of ", length, " tokens); lower one of the two: ", made.message()));
  }
  return std::unique_ptr<TransformerRunner>(
      new TransformerRunner(std::move(transformer), std::move(cache)));
}

TransformerRunner::TransformerRunner(std::unique_ptr<Transformer> transformer,
                                     std::unique_ptr<DecodeCache> cache)
    : transformer_(std::move(transformer)), cache_(std::move(cache)) {}

int64_t TransformerRunner::vocab_size() const { return transformer_->config().vocab_size; }

int TransformerRunner::num_slots() const { return static_cast<int>(cache_->num_slots()); }

int64_t TransformerRunner::max_length() const { return cache_->max_length(); }

absl::Status TransformerRunner::Prefill(const std::vector<int32_t>& prompt,
                                        const std::vector<int64_t>& slots,
                                        std::vector<float>* logits) {
  return Guard("computing a prompt", [&] {
    const std::vector<std::vector<int32_t>> prompts = {prompt};
    const std::vector<std::vector<int64_t>> all_slots = {slots};
    const PackedBatch batch = PackSequences(prompts, transformer_->weights()->device());
    const at::Tensor rows = ToHost(transformer_->Prefill(batch, all_slots, cache_.get()));
    const float* data = rows.const_data_ptr<float>();
    logits->assign(data, data + rows.numel());
  });
}

absl::Status TransformerRunner::CopyPrompt(int64_t from, int64_t to, int64_t length) {
  return Guard("copying a prompt", [&] { cache_->CopySlot(from, to, length); });
}

absl::StatusOr<std::span<const float>> TransformerRunner::Decode(
    const std::vector<int64_t>& tokens, const std::vector<int64_t>& slots,
    const std::vector<int64_t>& positions) {
  const absl::Status status = Guard("a decode step", [&] {
    logits_ = ToHost(transformer_->DecodeStep(tokens, slots, positions, cache_.get()));
  });
  if (!status.ok()) return status;
  return std::span<const float>(logits_.const_data_ptr<float>(), logits_.numel());
}

absl::StatusOr<std::unique_ptr<Engine>> MakeBatchedEngine(
    std::shared_ptr<Weights> weights, const TransformerRunner::Options& runner_options,
    const BatchedEngine::Options& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<TransformerRunner> runner,
                   TransformerRunner::Create(std::move(weights), runner_options));
  return std::unique_ptr<Engine>(new BatchedEngine(std::move(runner), options));
}

}  // namespace tritonrl
