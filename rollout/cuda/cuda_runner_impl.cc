#include "rollout/cuda/cuda_runner_impl.h"

#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "rollout/cuda/attention/paged_attention.h"
#include "rollout/cuda/cuda_kv_cache.h"
#include "rollout/cuda/cuda_transformer.h"
#include "rollout/cuda/fp8_weights.h"
#include "rollout/cuda/sampling/gpu_sampler.h"
#include "rollout/cuda/step_kernels.h"

namespace tritonrl {

namespace {

void Check(cudaError_t error, const char* what) {
  TORCH_CHECK(error == cudaSuccess, what, ": ", cudaGetErrorString(error));
}

at::Tensor Pinned(int64_t bytes) {
  return at::empty({std::max<int64_t>(bytes, 1)},
                   at::TensorOptions().dtype(at::kByte).pinned_memory(true));
}

}  // namespace

CudaRunner::Impl::Impl(std::shared_ptr<Weights> weights, const EngineConfig& config,
                       const EngineContext& context, int64_t pages, c10::cuda::CUDAStream stream)
    : device(weights->device()),
      stream(stream),
      ranks(context.ranks),
      tables(TableLimits(weights->config(), config, context)),
      layers(weights, LayerOptions(tables, config, context)),
      tunes(!config.batch_invariant()),
      cache(weights->config(), pages, device, config.enable_sleep_mode(), CacheTypeOf(config)) {
  const at::TensorOptions on_gpu(device);
  words = at::zeros({tables.words()}, on_gpu.dtype(at::kInt));
  workspace =
      at::empty({SamplingWorkspaceBytes(kMaxDraws, layers.vocab())}, on_gpu.dtype(at::kByte));
  drawn = at::empty({int64_t{kMaxDraws} * static_cast<int64_t>(sizeof(DrawnToken))},
                    on_gpu.dtype(at::kByte));
  for (int i = 0; i < kInFlight + 1; ++i) {
    blocks.push_back(Pinned(4 * tables.block_words()));
    events.emplace_back();
    Check(cudaEventCreateWithFlags(&events.back(), cudaEventDisableTiming), "an event");
  }
  if (!tunes) layers.PinAlgorithm();
  // The learner's stream may still be writing the weights.
  Check(cudaDeviceSynchronize(), "the start of the engine");
  layers.QuantizeWeights();
  if (ranks != nullptr) ranks->set_before_abort([this] { DestroyGraphs(); });
}

CudaRunner::Impl::~Impl() {
  if (ranks != nullptr) {
    try {  // Await has a deadline; after it, nothing waits for the other ranks any more
      Check(cudaEventRecord(events[next_event], stream.stream()), "an event");
      Await(events[next_event]);
    } catch (const std::exception&) {
    }
    ranks->set_before_abort(nullptr);
  }
  try {
    Synchronize();
  } catch (const std::exception&) {
  }
  DestroyGraphs();
  for (cudaEvent_t event : events) cudaEventDestroy(event);
}

void CudaRunner::Impl::Synchronize() {
  Check(cudaStreamSynchronize(stream.stream()), "the steps so far");
  layers.Synchronize();
}

void CudaRunner::Impl::DestroyGraphs() {
  for (const auto& [rows, graph] : graphs) {
    if (graph != nullptr) cudaGraphExecDestroy(graph);
  }
  graphs.clear();
}

StepInputs CudaRunner::Impl::OnGpu(const PackedStep& packed) const {
  StepInputs step;
  step.rows = packed.rows;
  step.decode = packed.decode;
  step.decode_words = At(packed.decode_words);
  step.chunks = packed.has_chunks ? &packed.chunks : nullptr;
  step.chunk_words = At(packed.chunk_words);
  step.page_table = At(0);
  step.slots = At(packed.slots);
  step.last_tokens = At(tables.last_tokens());
  step.chunk_tokens = At(packed.chunk_tokens);
  step.positions = At(packed.positions);
  step.page_slots = At(packed.page_slots);
  step.logit_rows = packed.logit_rows;
  step.logit_ids = packed.logit_ids == 0 ? nullptr : At(packed.logit_ids);
  return step;
}

void CudaRunner::Impl::RunLayers(const PackedStep& packed) { layers.Run(OnGpu(packed), &cache); }

void CudaRunner::Impl::Sample(const PackedStep& packed, int first, int count, DrawnToken* to) {
  if (count == 0) return;
  LaunchSampling({.logits = layers.logits().const_data_ptr<float>(),
                  .vocab = layers.vocab(),
                  .draws = reinterpret_cast<const SamplingRow*>(At(packed.draws)) + first,
                  .count = count,
                  .workspace = workspace.data_ptr(),
                  .drawn = to,
                  .last_tokens = At(tables.last_tokens()),
                  .stream = stream.stream()});
}

void CudaRunner::Impl::BroadcastDraws() {
  if (ranks == nullptr) return;
  const int64_t slots = tables.block() - tables.last_tokens();
  const absl::Status shared = ranks->Broadcast(words.narrow(0, tables.last_tokens(), slots), 0);
  TORCH_CHECK(shared.ok(), shared.message());
}

void CudaRunner::Impl::Await(cudaEvent_t event) {
  if (ranks == nullptr) return Check(cudaEventSynchronize(event), "a step of generation");
  cudaError_t found = cudaErrorNotReady;
  const absl::Status waited = ranks->Await(
      [&] { return (found = cudaEventQuery(event)) != cudaErrorNotReady; }, "a step of generation");
  TORCH_CHECK(waited.ok(), waited.message());
  Check(found, "a step of generation");
}

bool CudaRunner::Impl::AllHave(bool graph) {
  if (ranks == nullptr) return graph;
  const at::Tensor count = at::full({1}, graph ? 1.0 : 0.0, at::TensorOptions(device));
  const absl::Status summed = ranks->AllReduce(count);
  TORCH_CHECK(summed.ok(), summed.message());
  cudaEvent_t done = events[next_event];  // no step in flight uses it
  Check(cudaEventRecord(done, stream.stream()), "an event");
  Await(done);
  return count.item<float>() == static_cast<float>(ranks->size());
}

void CudaRunner::Impl::Autotune(int64_t rows) {
  if (!tunes) return;
  const absl::Time start = absl::Now();
  layers.Autotune(rows);
  graph_seconds += absl::ToDoubleSeconds(absl::Now() - start);
}

void CudaRunner::Impl::Capture(const PackedStep& packed) {
  const absl::Time start = absl::Now();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replay = nullptr;
  Check(cudaStreamBeginCapture(stream.stream(), cudaStreamCaptureModeThreadLocal), "a capture");
  bool whole = true;
  try {
    RunLayers(packed);
    Sample(packed, 0, packed.draw_rows, static_cast<DrawnToken*>(drawn.data_ptr()));
    BroadcastDraws();
  } catch (const std::exception&) {
    whole = false;
  }
  const bool ended = cudaStreamEndCapture(stream.stream(), &graph) == cudaSuccess;
  if (whole && ended && cudaGraphInstantiate(&replay, graph, 0) != cudaSuccess) replay = nullptr;
  if (graph != nullptr) cudaGraphDestroy(graph);
  // A graph needs memory of its own. If the capture fails, steps of this size launch each kernel.
  if (replay == nullptr) cudaGetLastError();
  graphs[packed.rows] = replay;  // before AllHave waits for other ranks, see DestroyGraphs
  if (!AllHave(replay != nullptr) && replay != nullptr) {
    cudaGraphExecDestroy(std::exchange(graphs[packed.rows], nullptr));
  }
  graph_seconds += absl::ToDoubleSeconds(absl::Now() - start);
}

void CudaRunner::Impl::Launch(const ModelStep& step) {
  const c10::cuda::CUDAStreamGuard on(stream);
  auto* block = static_cast<int32_t*>(blocks[next_block].data_ptr());
  next_block = (next_block + 1) % blocks.size();
  const PackedStep packed = tables.Pack(step, block);
  const auto* sampled =
      reinterpret_cast<const SamplingRow*>(block + (packed.draws - tables.block()));
  Check(cudaMemcpyAsync(At(tables.block()), block, 4 * packed.used, cudaMemcpyHostToDevice,
                        stream.stream()),
        "a step's tables");
  LaunchScatterWords(At(packed.updates), packed.update_count, At(0), stream.stream());
  cache.Copy(At(packed.copies), packed.copy_count);
  InFlightStep result;
  result.draws = static_cast<int64_t>(step.draws.size());
  result.drawn = Pinned(result.draws * static_cast<int64_t>(sizeof(DrawnToken)));
  auto* to = static_cast<DrawnToken*>(result.drawn.data_ptr());
  auto* from = static_cast<DrawnToken*>(drawn.data_ptr());
  const auto fetch = [&](int first, int count) {
    Check(cudaMemcpyAsync(to + first, from, count * sizeof(DrawnToken), cudaMemcpyDeviceToHost,
                          stream.stream()),
          "drawn tokens");
  };
  const auto graph = graphs.find(packed.rows);
  const bool known = graph != graphs.end();
  if (packed.only_decodes() && known && graph->second != nullptr) {
    Check(cudaGraphLaunch(graph->second, stream.stream()), "a replay");
    fetch(0, static_cast<int>(result.draws));
  } else {
    // Autotuning overwrites the activations, but neither the step's inputs nor the KV cache.
    if (packed.only_decodes() && !known) Autotune(packed.rows);
    RunLayers(packed);
    for (int first = 0; first < packed.draw_rows; first += kMaxDraws) {
      const int count = std::min(kMaxDraws, packed.draw_rows - first);
      Sample(packed, first, count, from);
      // Padding draws are not copied.
      const int wanted = std::min(count, static_cast<int>(result.draws) - first);
      if (wanted > 0) fetch(first, wanted);
    }
    BroadcastDraws();
    // The capture follows the step itself, because kernels must have run before they are captured.
    // The next step with the same number of rows is a replay.
    if (packed.only_decodes() && !known) Capture(packed);
  }
  result.done = events[next_event];
  next_event = (next_event + 1) % events.size();
  Check(cudaEventRecord(result.done, stream.stream()), "an event");
  if (NeedsHost(step)) {
    Await(result.done);
    AddHostResults(step, packed, sampled, &result);
  }
  in_flight.push_back(std::move(result));
}

std::vector<TokenDraw> CudaRunner::Impl::Collect() {
  InFlightStep result = std::move(in_flight.front());
  in_flight.pop_front();
  prompt_log_probs = std::move(result.prompt_log_probs);
  if (result.on_host) return std::move(result.host_draws);
  Await(result.done);
  std::vector<TokenDraw> draws(result.draws);
  const auto* from = static_cast<const DrawnToken*>(result.drawn.data_ptr());
  for (int64_t i = 0; i < result.draws; ++i) draws[i] = {from[i].token, from[i].log_prob};
  return draws;
}

namespace {

constexpr double kCacheShare = 0.9;  // maximum share of the free memory

bool HasRowScaledGemms() { return at::cuda::getCurrentDeviceProperties()->major == 9; }

}  // namespace

StepPacker::Limits TableLimits(const ModelConfig& model, const EngineConfig& config,
                               const EngineContext& context) {
  return {.slots = config.max_num_seqs(),
          .max_length = context.max_length,
          .max_tokens = config.max_num_batched_tokens(),
          .shape = {.query_heads = static_cast<int>(model.num_heads),
                    .key_heads = static_cast<int>(model.num_kv_heads),
                    .head_dim = static_cast<int>(model.head_dim),
                    .type = CacheTypeOf(config)},
          .device = CurrentPrefillDevice(),
          .batch_invariant = config.batch_invariant()};
}

CacheType CacheTypeOf(const EngineConfig& config) {
  return config.fp8_kv_cache() ? CacheType::kE4M3 : CacheType::kBFloat16;
}

CudaTransformer::Options LayerOptions(const StepPacker& tables, const EngineConfig& config,
                                      const EngineContext& context) {
  const auto rows = [&config](int64_t most) {
    const int64_t each = config.batch_invariant() ? CudaGemm::kPinnedRows : 1;
    return (most + each - 1) / each * each;
  };
  return {.max_rows = rows(tables.max_rows()),
          .max_logits = rows(tables.max_logits()),
          .max_context = context.max_length,
          .fused_decode = config.fused_decode(),
          .batch_invariant = config.batch_invariant(),
          .cache = CacheTypeOf(config),
          .fp8_weights = config.fp8_weights(),
          .ranks = context.ranks};
}

absl::Status CheckSupported(const ModelConfig& model, const EngineConfig& config,
                            const EngineContext& context) {
  if (config.max_num_seqs() > kMaxDraws) {
    return absl::InvalidArgumentError(absl::StrCat("max_num_seqs is ", config.max_num_seqs(),
                                                   "; it must be at most ", kMaxDraws,
                                                   " for bf16 weights on a GPU"));
  }
  if (config.batch_invariant() && context.ranks != nullptr) {
    return absl::InvalidArgumentError(
        "batch_invariant is on, but the model is sharded over ranks, and the rounding of their "
        "all-reduces depends on the size of a step; leave one of the two off");
  }
  if (config.fp8_weights() && !Fp8Weights::Supports(model)) {
    return absl::InvalidArgumentError(
        "fp8_weights needs sizes of this model's layers to be multiples of 16; leave it off");
  }
  if (config.fp8_weights() && !HasRowScaledGemms()) {
    return absl::FailedPreconditionError(
        "fp8_weights needs a GPU of compute capability 9.0 (H100, H200): only there cuBLASLt "
        "has FP8 GEMMs with a scale for each row; leave it off");
  }
  return absl::OkStatus();
}

int64_t DefaultCacheBytes(const ModelConfig& model, const EngineConfig& config,
                          const EngineContext& context) {
  c10::cuda::CUDACachingAllocator::emptyCache();
  size_t free = 0, total = 0;
  const cudaError_t error = cudaMemGetInfo(&free, &total);
  TORCH_CHECK(error == cudaSuccess, "the GPU's memory: ", cudaGetErrorString(error));
  const StepPacker tables(TableLimits(model, config, context));
  const int64_t others = CudaTransformer::Bytes(model, LayerOptions(tables, config, context)) +
                         4 * tables.words() + SamplingWorkspaceBytes(kMaxDraws, model.vocab_size) +
                         context.spare_bytes;
  const int64_t wanted = config.max_num_seqs() * PagesFor(context.max_length) *
                         CudaKvCache::PageBytes(model, CacheTypeOf(config));
  return std::min(
      wanted,
      static_cast<int64_t>(kCacheShare * static_cast<double>(static_cast<int64_t>(free) - others)));
}

}  // namespace tritonrl
