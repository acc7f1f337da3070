#include "rollout/cuda/cuda_runner.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "rollout/cuda/gpu_cache.h"
#include "rollout/cuda/gpu_sampler.h"
#include "rollout/cuda/runner_options.h"
#include "rollout/cuda/step_layers.h"
#include "rollout/cuda/step_tables.h"
#include "rollout/cuda/update_words.h"
#include "rollout/runner_sizes.h"

namespace tritonrl {
namespace {

constexpr int kInFlight = 2;
constexpr int64_t kMostVocab = 1 << 20;  // that the sampler takes

void Check(cudaError_t error, const char* what) {
  TORCH_CHECK(error == cudaSuccess, what, ": ", cudaGetErrorString(error));
}

// What LibTorch throws, as a Status that begins with `what`.
template <typename Work>
absl::Status Guard(const char* what, Work work) {
  try {
    work();
    return absl::OkStatus();
  } catch (const c10::OutOfMemoryError& error) {
    return absl::ResourceExhaustedError(absl::StrCat(what, ": the GPU has no memory left"));
  } catch (const std::exception& error) {
    const std::string text = error.what();
    return absl::InternalError(absl::StrCat(what, ": ", text.substr(0, text.find('\n'))));
  }
}

// A step under way: its draws in memory that the GPU writes and the host reads.
struct UnderWay {
  int64_t draws = 0;
  at::Tensor drawn;  // pinned, [draws] DrawnToken
  cudaEvent_t done = nullptr;
};

at::Tensor Pinned(int64_t bytes) {
  return at::empty({std::max<int64_t>(bytes, 1)},
                   at::TensorOptions().dtype(at::kByte).pinned_memory(true));
}

}  // namespace

struct CudaRunner::Impl {
  // The weights' GPU and `stream` must be the current ones.
  Impl(std::shared_ptr<Weights> weights, const Options& options, int64_t pages,
       c10::cuda::CUDAStream stream);
  ~Impl();

  StepOnGpu OnGpu(const PackedStep& packed) const;
  // Logits and draws of a packed step whose block is on the GPU.
  void RunLayers(const PackedStep& packed);
  void Sample(const PackedStep& packed, int first, int count, DrawnToken* to);
  // Gives rank 0's last tokens to all ranks.
  void ShareDraws();
  void Tune(int64_t rows);
  // Captures steps of so many rows that only decode, and their draws.
  void Capture(const PackedStep& packed);
  // Whether all ranks have a graph: none may replay sums that another launches one by one.
  bool AllHave(bool graph);
  // All that there are: also when other ranks are lost, as NCCL gives up nothing that graphs hold.
  void DestroyGraphs();
  // Until the GPU has reached the event.
  void Await(cudaEvent_t event);
  void Launch(const ModelStep& step);
  std::vector<TokenDraw> Collect();

  int32_t* At(int64_t place) const { return words.data_ptr<int32_t>() + place; }

  const at::Device device;
  const c10::cuda::CUDAStream stream;
  RankSum* const ranks;  // null: the model is whole
  StepTables tables;
  StepLayers layers;
  const bool tunes;  // else products are fixed
  GpuCache cache;
  at::Tensor words;  // see StepTables::words
  at::Tensor workspace;
  at::Tensor drawn;  // [kMostDraws] DrawnToken
  std::vector<at::Tensor> blocks;
  size_t next_block = 0;
  std::vector<cudaEvent_t> events;
  size_t next_event = 0;
  std::deque<UnderWay> under_way;
  std::map<int64_t, cudaGraphExec_t> graphs;  // by rows; null: there was no making one
  double graph_seconds = 0;
  absl::Status copied;  // of the last CopyWeights
};

CudaRunner::Impl::Impl(std::shared_ptr<Weights> weights, const Options& options, int64_t pages,
                       c10::cuda::CUDAStream stream)
    : device(weights->device()),
      stream(stream),
      ranks(options.ranks),
      tables(TableLimits(weights->config(), options)),
      layers(weights, LayerOptions(tables, options)),
      tunes(!options.batch_invariant),
      cache(weights->config(), pages, device, options.releasable_memory, CacheTypeOf(options)) {
  const at::TensorOptions on_gpu(device);
  words = at::zeros({tables.words()}, on_gpu.dtype(at::kInt));
  workspace =
      at::empty({SamplingWorkspaceBytes(kMostDraws, layers.vocab())}, on_gpu.dtype(at::kByte));
  drawn = at::empty({int64_t{kMostDraws} * static_cast<int64_t>(sizeof(DrawnToken))},
                    on_gpu.dtype(at::kByte));
  for (int i = 0; i < kInFlight + 1; ++i) {
    blocks.push_back(Pinned(4 * tables.block_words()));
    events.emplace_back();
    Check(cudaEventCreateWithFlags(&events.back(), cudaEventDisableTiming), "an event");
  }
  if (!tunes) layers.Fix();
  // The learner's stream may still be writing the weights.
  Check(cudaDeviceSynchronize(), "the start of the engine");
  layers.CopyWeights();
  if (ranks != nullptr) ranks->set_before_end([this] { DestroyGraphs(); });
}

CudaRunner::Impl::~Impl() {
  if (ranks != nullptr) {
    try {  // with a deadline, after which nothing waits for the others any more
      Check(cudaEventRecord(events[next_event], stream.stream()), "an event");
      Await(events[next_event]);
    } catch (const std::exception&) {
    }
    ranks->set_before_end(nullptr);
  }
  cudaDeviceSynchronize();  // a step that failed may have left work in its second stream
  DestroyGraphs();
  for (cudaEvent_t event : events) cudaEventDestroy(event);
}

void CudaRunner::Impl::DestroyGraphs() {
  for (const auto& [rows, graph] : graphs) {
    if (graph != nullptr) cudaGraphExecDestroy(graph);
  }
  graphs.clear();
}

StepOnGpu CudaRunner::Impl::OnGpu(const PackedStep& packed) const {
  StepOnGpu step;
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

void CudaRunner::Impl::ShareDraws() {
  if (ranks == nullptr) return;
  const int64_t slots = tables.block() - tables.last_tokens();
  const absl::Status shared = ranks->Share(words.narrow(0, tables.last_tokens(), slots));
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
  const absl::Status summed = ranks->Sum(count);
  TORCH_CHECK(summed.ok(), summed.message());
  cudaEvent_t done = events[next_event];  // not recorded for a step yet
  Check(cudaEventRecord(done, stream.stream()), "an event");
  Await(done);
  return count.item<float>() == static_cast<float>(ranks->size());
}

void CudaRunner::Impl::Tune(int64_t rows) {
  if (!tunes) return;
  const absl::Time start = absl::Now();
  layers.Tune(rows);
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
    ShareDraws();
  } catch (const std::exception&) {
    whole = false;
  }
  const bool ended = cudaStreamEndCapture(stream.stream(), &graph) == cudaSuccess;
  if (whole && ended && cudaGraphInstantiate(&replay, graph, 0) != cudaSuccess) replay = nullptr;
  if (graph != nullptr) cudaGraphDestroy(graph);
  // Without one (graphs take memory of their own) steps of so many rows are launched one by one.
  if (replay == nullptr) cudaGetLastError();
  graphs[packed.rows] = replay;  // before it waits for others, see DestroyGraphs
  if (!AllHave(replay != nullptr) && replay != nullptr) {
    cudaGraphExecDestroy(std::exchange(graphs[packed.rows], nullptr));
  }
  graph_seconds += absl::ToDoubleSeconds(absl::Now() - start);
}

void CudaRunner::Impl::Launch(const ModelStep& step) {
  const c10::cuda::CUDAGuard on_device(device);
  const c10::cuda::CUDAStreamGuard on(stream);
  auto* block = static_cast<int32_t*>(blocks[next_block].data_ptr());
  next_block = (next_block + 1) % blocks.size();
  const PackedStep packed = tables.Pack(step, block);
  Check(cudaMemcpyAsync(At(tables.block()), block, 4 * packed.used, cudaMemcpyHostToDevice,
                        stream.stream()),
        "a step's tables");
  LaunchUpdateWords(At(packed.updates), packed.update_count, At(0), stream.stream());
  cache.Copy(At(packed.copies), packed.copy_count);
  UnderWay result;
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
    // Tuning writes over what a step works on, not over what it keeps.
    if (packed.only_decodes() && !known) Tune(packed.rows);
    RunLayers(packed);
    for (int first = 0; first < packed.draw_rows; first += kMostDraws) {
      const int count = std::min(kMostDraws, packed.draw_rows - first);
      Sample(packed, first, count, from);
      // Those that fill up are nobody's.
      const int wanted = std::min(count, static_cast<int>(result.draws) - first);
      if (wanted > 0) fetch(first, wanted);
    }
    ShareDraws();
    // Behind the step itself, as kernels must have run before they are captured. The next one of
    // as many rows is a replay.
    if (packed.only_decodes() && !known) Capture(packed);
  }
  result.done = events[next_event];
  next_event = (next_event + 1) % events.size();
  Check(cudaEventRecord(result.done, stream.stream()), "an event");
  under_way.push_back(std::move(result));
}

std::vector<TokenDraw> CudaRunner::Impl::Collect() {
  const UnderWay result = std::move(under_way.front());
  under_way.pop_front();
  Await(result.done);
  std::vector<TokenDraw> draws(result.draws);
  const auto* from = static_cast<const DrawnToken*>(result.drawn.data_ptr());
  for (int64_t i = 0; i < result.draws; ++i) draws[i] = {from[i].token, from[i].log_prob};
  return draws;
}

bool CudaRunner::Takes(const Weights& weights) {
  const ModelConfig& config = weights.config();
  return weights.device().is_cuda() && weights.dtype() == at::kBFloat16 &&
         (config.head_dim == 64 || config.head_dim == 128) &&
         config.num_heads <= 16 * config.num_kv_heads && config.vocab_size % 4 == 0 &&
         config.vocab_size <= kMostVocab && config.hidden_size % 8 == 0 &&
         config.intermediate_size % 8 == 0;
}

absl::StatusOr<std::unique_ptr<CudaRunner>> CudaRunner::Create(std::shared_ptr<Weights> weights,
                                                               const Options& given) {
  const ModelConfig& config = weights->config();
  RETURN_IF_ERROR(CheckRunnerSizes({.max_running = given.max_running,
                                    .cache_bytes = given.cache_bytes,
                                    .max_step_tokens = given.max_step_tokens,
                                    .max_length = given.max_length},
                                   kMostDraws, config.max_positions));
  absl::Status checked;
  RETURN_IF_ERROR(Guard("the GPU", [&] {
    const c10::cuda::CUDAGuard on_device(weights->device());
    checked = CheckOptions(config, given);
  }));
  RETURN_IF_ERROR(checked);
  Options options = given;
  if (options.max_length == 0) options.max_length = config.max_positions;
  if (options.max_step_tokens == 0) options.max_step_tokens = 8192;
  options.max_step_tokens =
      std::max(options.max_step_tokens,
               options.max_running + (options.batch_invariant ? kInvariantChunk : 0));
  const int64_t page_bytes = GpuCache::PageBytes(config, CacheTypeOf(options));
  std::unique_ptr<Impl> impl;
  const absl::Status made = Guard("the engine's memory", [&] {
    const c10::cuda::CUDAGuard on_device(weights->device());
    if (options.cache_bytes == 0) {
      options.cache_bytes = ChosenCacheBytes(config, options);
      if (options.cache_bytes < page_bytes) return;
    }
    const int64_t pages = std::max<int64_t>(1, options.cache_bytes / page_bytes);
    const auto stream =
        c10::cuda::getStreamFromPool(/*isHighPriority=*/false, weights->device().index());
    const c10::cuda::CUDAStreamGuard on_stream(stream);
    impl = std::make_unique<Impl>(std::move(weights), options, pages, stream);
  });
  if (absl::IsResourceExhausted(made)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(made.message(), " (cache of ", options.cache_bytes >> 20,
                     " MiB); lower cache_bytes, max_running or max_step_tokens"));
  }
  RETURN_IF_ERROR(made);
  if (impl == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no memory is left on the GPU for keys and values: beside the engine's buffers and ",
        options.spare_bytes >> 20, " MiB that are spared for training it lacks ",
        (page_bytes - options.cache_bytes) >> 20,
        " MiB; lower max_running, max_length or max_step_tokens"));
  }
  return std::unique_ptr<CudaRunner>(new CudaRunner(options, std::move(impl)));
}

CudaRunner::CudaRunner(const Options& options, std::unique_ptr<Impl> impl)
    : options_(options), impl_(std::move(impl)) {}
CudaRunner::~CudaRunner() = default;

int64_t CudaRunner::vocab_size() const { return impl_->layers.vocab(); }
int CudaRunner::num_pages() const { return static_cast<int>(impl_->cache.pages()); }
int CudaRunner::page_size() const { return kPageTokens; }
int CudaRunner::graphs() const { return static_cast<int>(impl_->graphs.size()); }
double CudaRunner::graph_seconds() const { return impl_->graph_seconds; }
bool CudaRunner::chains() const { return impl_->layers.chains(); }

void CudaRunner::WeightsChanged() {
  const c10::cuda::CUDAGuard on_device(impl_->device);
  const c10::cuda::CUDAStreamGuard on(impl_->stream);
  // An error comes out of the next step.
  cudaDeviceSynchronize();
  impl_->copied = Guard("copies of the weights", [&] { impl_->layers.CopyWeights(); });
}

absl::Status CudaRunner::ReleaseMemory() {
  if (!impl_->under_way.empty()) {
    return absl::FailedPreconditionError("memory cannot be given back while a step is under way");
  }
  return Guard("giving back the memory of keys and values", [&] {
    Check(cudaDeviceSynchronize(), "the steps so far");
    impl_->cache.Release();
  });
}

absl::Status CudaRunner::TakeMemory() {
  const absl::Status taken =
      Guard("taking the memory of keys and values again", [&] { impl_->cache.Take(); });
  if (!absl::IsResourceExhausted(taken)) return taken;
  const c10::cuda::CUDAGuard on_device(impl_->device);
  size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) return taken;
  return absl::ResourceExhaustedError(
      absl::StrCat("keys and values need ", options_.cache_bytes >> 20, " MiB, and the GPU has ",
                   free >> 20, " free; lower cache_bytes, or what others keep there"));
}

absl::Status CudaRunner::Launch(const ModelStep& step) {
  if (impl_->cache.released()) {
    return absl::FailedPreconditionError("a step needs the memory that ReleaseMemory gave back");
  }
  RETURN_IF_ERROR(impl_->copied);
  return Guard("a step of generation", [&] { impl_->Launch(step); });
}

absl::StatusOr<std::vector<TokenDraw>> CudaRunner::Collect() {
  if (impl_->under_way.empty()) {
    return absl::FailedPreconditionError("no step has been launched");
  }
  std::vector<TokenDraw> draws;
  RETURN_IF_ERROR(Guard("a step of generation", [&] { draws = impl_->Collect(); }));
  return draws;
}

}  // namespace tritonrl
