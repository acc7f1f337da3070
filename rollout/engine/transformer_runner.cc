#include "rollout/engine/transformer_runner.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/torch_runtime.h"

namespace tritonrl {
namespace {

constexpr char kLessMemory[] = "lower cache_bytes, or max_num_seqs or max_length if that is 0";

// Refuses features that only CudaRunner has: CudaRunner does not support these weights.
absl::Status CheckSupported(const Weights& weights, const EngineConfig& config) {
  const auto refuse = [&](const char* field, const char* also) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " is for bf16 weights on a GPU, of the sizes that ",
                     "rollout/cuda/cuda_runner.h takes", also, "; these are ",
                     c10::toString(weights.dtype()), " on ", weights.device().str()));
  };
  if (config.fp8_kv_cache()) return refuse("fp8_kv_cache", "");
  if (config.fp8_weights()) return refuse("fp8_weights", "");
  const bool exact = weights.device().is_cpu() && weights.dtype() == at::kFloat;
  if (config.batch_invariant() && !exact) {
    return refuse("batch_invariant", ", and for fp32 on a CPU");
  }
  return absl::OkStatus();
}

int64_t DefaultPages(int64_t max_num_seqs, int64_t max_length, int64_t page_bytes,
                     at::Device device) {
  const int64_t one = PagedKvCache::NumPages(max_length);
  const int64_t all = one * max_num_seqs;
  if (!device.is_cpu()) return all;
  const int64_t memory = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return std::clamp(memory / 4 / page_bytes, one, all);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TransformerRunner>> TransformerRunner::Create(
    std::shared_ptr<Weights> weights, const EngineConfig& given_config,
    const EngineContext& given_context) {
  const ModelConfig& model = weights->config();
  EngineConfig config = given_config;
  EngineContext context = given_context;
  RETURN_IF_ERROR(CheckSupported(*weights, config));
  RETURN_IF_ERROR(ResolveEngineConfig(/*cuda=*/false, 0, model.max_positions, &config, &context));
  const int64_t page_bytes = PagedKvCache::PageBytes(model, weights->dtype());
  const int64_t pages =
      config.cache_bytes() == 0
          ? DefaultPages(config.max_num_seqs(), context.max_length, page_bytes, weights->device())
          : config.cache_bytes() / page_bytes;
  if (pages < 1) {
    return absl::InvalidArgumentError(absl::StrCat("cache_bytes is ", config.cache_bytes(),
                                                   ", but ", PagedKvCache::kPageSize,
                                                   " tokens of this model take ", page_bytes));
  }
  config.set_cache_bytes(pages * page_bytes);
  std::unique_ptr<PagedKvCache> cache;
  std::unique_ptr<Transformer> transformer;
  const std::string what = absl::StrCat("a cache of ", config.cache_bytes() >> 20, " MiB (",
                                        pages * PagedKvCache::kPageSize, " tokens)");
  const absl::Status made = CatchTorch(what, kLessMemory, [&] {
    if (pages > std::numeric_limits<int32_t>::max()) throw std::bad_alloc();
    cache = std::make_unique<PagedKvCache>(model, pages, weights->device(), weights->dtype());
    Transformer::Options transformer_options;
    transformer_options.cpu_threads = context.cpu_threads;
    transformer_options.ranks = context.ranks;
    transformer = std::make_unique<Transformer>(model, std::move(weights), transformer_options);
  });
  // LibTorch's CPU allocator has no exception type of its own for lack of memory: it arrives as
  // Internal.
  if (absl::IsInternal(made)) {
    return absl::ResourceExhaustedError(absl::StrCat(made.message(), "; ", kLessMemory));
  }
  RETURN_IF_ERROR(made);
  return std::unique_ptr<TransformerRunner>(
      new TransformerRunner(config, context, std::move(transformer), std::move(cache)));
}

TransformerRunner::TransformerRunner(const EngineConfig& config, const EngineContext& context,
                                     std::unique_ptr<Transformer> transformer,
                                     std::unique_ptr<PagedKvCache> cache)
    : config_(config),
      context_(context),
      num_pages_(static_cast<int>(cache->num_pages())),
      transformer_(std::move(transformer)),
      cache_(std::move(cache)),
      samplers_(transformer_->num_threads()),
      last_token_(config.max_num_seqs()) {}

absl::Status TransformerRunner::Sleep() {
  if (!results_.empty()) {
    return absl::FailedPreconditionError("the engine cannot sleep while a step is in flight");
  }
  cache_.reset();
  return absl::OkStatus();
}

absl::Status TransformerRunner::Wake() {
  if (cache_ != nullptr) return absl::OkStatus();
  const Weights& weights = *transformer_->weights();
  return CatchTorch(absl::StrCat("a cache of ", config_.cache_bytes() >> 20, " MiB"), kLessMemory,
                    [&] {
                      cache_ = std::make_unique<PagedKvCache>(weights.config(), num_pages_,
                                                              weights.device(), weights.dtype());
                    });
}

absl::Status TransformerRunner::Launch(const ModelStep& step) {
  if (cache_ == nullptr) {
    return absl::FailedPreconditionError("the engine sleeps: call Wake() before a step");
  }
  return CatchTorch("a step of generation", kLessMemory, [&] {
    const at::Tensor logits = RunModel(step);
    prompt_log_probs_ = FindPromptLogProbs(step, logits);
    results_.push_back(DrawAll(step, logits));
    if (context_.ranks != nullptr) BroadcastDraws();
  });
}

void TransformerRunner::BroadcastDraws() {
  const at::Tensor tokens =
      at::from_blob(last_token_.data(), {static_cast<int64_t>(last_token_.size())}, at::kInt);
  // On a CPU this is the memory of `tokens`.
  const at::Tensor shared = tokens.to(transformer_->weights()->device());
  const absl::Status status = context_.ranks->Broadcast(shared, /*root=*/0);
  TORCH_CHECK(status.ok(), status.message());
  tokens.copy_(shared);
}

at::Tensor TransformerRunner::RunModel(const ModelStep& step) {
  for (const PageCopy& copy : step.copies) cache_->CopyPage(copy.from, copy.to);
  std::vector<SequenceSlice> slices = step.slices;
  for (SequenceSlice& slice : slices) {
    if (slice.tokens.empty()) slice.tokens = {&last_token_.at(slice.slot), 1};
  }
  return transformer_->Step(slices, cache_.get()).to(at::kCPU).contiguous();
}

std::vector<TokenDraw> TransformerRunner::DrawAll(const ModelStep& step, const at::Tensor& logits) {
  std::vector<int64_t> row;  // logit row of each draw
  int64_t rows = 0;
  for (const SequenceSlice& slice : step.slices) {
    for (int i = 0; i < slice.draws; ++i) {
      row.push_back(rows + (slice.num_draft_tokens > 0 ? i : slice.logit_rows() - 1));
    }
    rows += slice.logit_rows();
  }
  const int64_t vocab = vocab_size(), count = static_cast<int64_t>(row.size());
  const float* data = logits.const_data_ptr<float>();
  std::vector<TokenDraw> draws(count);
  const int64_t parts = static_cast<int64_t>(samplers_.size());
  transformer_->ParallelFor(parts, [&](int64_t part) {
    for (int64_t i = part * count / parts; i < (part + 1) * count / parts; ++i) {
      const StepDraw& draw = step.draws[i];
      const std::span<const float> own(data + row[i] * vocab, static_cast<size_t>(vocab));
      const absl::StatusOr<TokenDraw> drawn = samplers_[part].Draw(
          own, *draw.sampling, TokenUniform(draw.stream, draw.position), draw.history);
      draws[i] = drawn.ok() ? *drawn : TokenDraw{.token = -1};
      if (!drawn.ok() || draw.top_log_probs < 0) continue;
      draws[i].log_probs = std::make_shared<TokenLogProbs>(
          samplers_[part].LogProbs(own, drawn->token, draw.top_log_probs).value());
    }
  });
  for (int64_t i = 0; i < count; ++i) {
    if (step.draws[i].slot >= 0) last_token_.at(step.draws[i].slot) = draws[i].token;
  }
  return draws;
}

std::vector<TokenLogProbs> TransformerRunner::FindPromptLogProbs(const ModelStep& step,
                                                                 const at::Tensor& logits) {
  struct Target {
    int64_t row = 0;
    int32_t token = 0;
    int top = 0;
  };
  std::vector<Target> targets;
  int64_t rows = 0;
  size_t next = 0;
  for (const SequenceSlice& slice : step.slices) {
    if (slice.all_logits) {
      const PromptTargets& wanted = step.prompt_targets.at(next++);
      for (size_t k = 0; k < wanted.targets.size(); ++k) {
        targets.push_back({rows + static_cast<int64_t>(k), wanted.targets[k], wanted.top});
      }
    }
    rows += slice.logit_rows();
  }
  std::vector<TokenLogProbs> found(targets.size());
  if (targets.empty()) return found;
  const int64_t vocab = vocab_size(), count = static_cast<int64_t>(targets.size());
  const float* data = logits.const_data_ptr<float>();
  const int64_t parts = static_cast<int64_t>(samplers_.size());
  transformer_->ParallelFor(parts, [&](int64_t part) {
    for (int64_t i = part * count / parts; i < (part + 1) * count / parts; ++i) {
      const Target& target = targets[i];
      absl::StatusOr<TokenLogProbs> one = samplers_[part].LogProbs(
          {data + target.row * vocab, static_cast<size_t>(vocab)}, target.token, target.top);
      found[i] = one.ok() ? *std::move(one) : TokenLogProbs{.token = {target.token, NAN}};
    }
  });
  return found;
}

std::vector<TokenLogProbs> TransformerRunner::TakePromptLogProbs() {
  return std::exchange(prompt_log_probs_, {});
}

int64_t TransformerRunner::max_prompt_logits() const {
  constexpr int64_t kMaxLogits = int64_t{1} << 26;  // fp32: 256 MiB
  return std::max<int64_t>(1, kMaxLogits / vocab_size());
}

absl::StatusOr<std::vector<TokenDraw>> TransformerRunner::Collect() {
  if (results_.empty()) return absl::FailedPreconditionError("no step has been launched");
  std::vector<TokenDraw> draws = std::move(results_.front());
  results_.pop_front();
  return draws;
}

}  // namespace tritonrl
