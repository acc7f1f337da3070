#include "model/cuda/attention/cudnn_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>

#include <chrono>
#include <limits>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/cuda/attention/attention_graph.h"

namespace tritonrl {
namespace {

constexpr size_t kMaxPlans = 512;
constexpr size_t kMaxSeenLengths = 4096;

// Attention of a sequence of one token, which cuDNN does not support: out = v, and only v has a
// gradient other than zero.
void OneToken(const AttentionOperands& at) {
  const int64_t keys = at.in.k.size(1), group = at.in.q.size(1) / keys;
  const auto grouped = [&](const at::Tensor& x) { return x.unflatten(1, {keys, group}); };
  if (!at.backward()) {
    grouped(at.out).copy_(at.in.v.unsqueeze(2).expand({1, keys, group, at.in.v.size(2)}));
    return;
  }
  at.d_in.q.zero_();
  at.d_in.k.zero_();
  at.d_in.v.copy_(grouped(at.d_out).sum(2));
}

}  // namespace

struct CudnnAttention::Impl {
  Impl(at::Device device, const Options& options) : device(device), options(options) {
    const c10::cuda::CUDAGuard guard(device);
    TORCH_CHECK(cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS, "cuDNN does not start");
    per_sequence = PerSequence(device, options);
  }
  ~Impl() {
    plans.clear();
    cudnnDestroy(handle);
  }

  const AttentionPlan& PlanFor(const AttentionShape& shape) {
    const auto found = plans.find(shape);
    if (found != plans.end()) return found->second;
    if (plans.size() >= kMaxPlans) {
      c10::cuda::device_synchronize();  // kernels of the old plans may still run
      plans.clear();
    }
    const auto start = std::chrono::steady_clock::now();
    const AttentionPlan& plan =
        plans.emplace(shape, BuildAttentionPlan(shape, handle)).first->second;
    plan_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ++plans_made;
    return plan;
  }

  void Execute(const AttentionPlan& plan, std::unordered_map<int64_t, void*> places) {
    const auto room = c10::cuda::CUDACachingAllocator::get()->allocate(
        std::max<int64_t>(1, WorkspaceBytes(plan)));
    tritonrl::Execute(plan, handle, &places, room.get());
  }

  // Runs all sequences of a bucket in one call.
  void RunBucket(const AttentionBucket& bucket, const AttentionOperands& operands) {
    AttentionShape shape = operands.Shape();
    shape.sequences = bucket.count();
    shape.max_length = bucket.max_length;
    const AttentionPlan& plan = PlanFor(shape);
    std::unordered_map<int64_t, void*> places = operands.Where();
    for (const auto& [stride, uid] : plan.offsets) {
      TORCH_CHECK(operands.out.size(0) <= std::numeric_limits<int32_t>::max() / stride,
                  "cuDNN attention: ", operands.out.size(0), " rows ", stride,
                  " elements apart are more than 2^31 elements; make the micro-batch smaller");
      places[uid] = bucket.OffsetsFor(stride).data_ptr();
    }
    places[kLengths] = bucket.lengths.data_ptr();
    Execute(plan, std::move(places));
  }

  // Runs one sequence with a plan for exactly its number of rows.
  void RunRows(const AttentionOperands& operands) {
    const int64_t rows = operands.out.size(0);
    const bool ordered = options.deterministic && operands.backward();
    const int64_t calls =
        ordered ? DeterministicBackwardCalls(operands.in.q.size(1), operands.in.k.size(1), rows)
                : 1;
    for (int64_t i = 0; i < calls; ++i) {
      const AttentionOperands part = operands.Part(0, rows, i, calls);
      AttentionShape shape = part.Shape();
      shape.dense = true;
      shape.deterministic = ordered;
      shape.max_length = rows;
      Execute(PlanFor(shape), part.Where());
    }
  }

  void RunSequence(int64_t begin, int64_t length, int64_t rows, const AttentionOperands& operands) {
    const AttentionOperands sequence = operands.Part(begin, length, 0, 1);
    if (length == 1) return OneToken(sequence);
    if (length == rows) return RunRows(sequence);
    PaddedOperands padded(sequence, rows);
    RunRows(padded.operands());
    padded.TakeResults();
  }

  // Whether the bucket holds a single sequence that gets a call for its exact length.
  bool Exact(const AttentionBucket& bucket, const PackedLengths& lengths) {
    if (!bucket.exact.has_value()) {
      const int64_t length = bucket.sequences.size() == 1 ? lengths.length(bucket.sequences[0]) : 0;
      bucket.exact =
          length > 0 && length >= options.dense_min_length && !seen.insert(length).second;
      if (seen.size() > kMaxSeenLengths) seen.clear();
    }
    return *bucket.exact;
  }

  void Run(const PackedLengths& lengths, const AttentionOperands& operands) {
    const std::lock_guard<std::mutex> lock(mutex);
    const c10::cuda::CUDAGuard guard(device);
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(device.index()).stream();
    TORCH_CHECK(cudnnSetStream(handle, stream) == CUDNN_STATUS_SUCCESS, "cuDNN: no stream");
    for (const AttentionBucket& bucket : lengths.buckets) {
      if (!per_sequence && !Exact(bucket, lengths)) {
        RunBucket(bucket, operands);
        continue;
      }
      for (const int64_t i : bucket.sequences) {
        const int64_t length = lengths.length(i);
        RunSequence(lengths.begin(i), length, per_sequence ? PaddedLength(length) : length,
                    operands);
      }
    }
  }

  const at::Device device;
  const Options options;
  bool per_sequence = false;
  cudnnHandle_t handle = nullptr;
  std::mutex mutex;
  std::map<AttentionShape, AttentionPlan> plans;
  std::set<int64_t> seen;  // lengths of single sequences
  int64_t plans_made = 0;
  double plan_seconds = 0;
};

CudnnAttention::CudnnAttention(at::Device device, const Options& options)
    : impl_(std::make_unique<Impl>(device, options)) {}
CudnnAttention::~CudnnAttention() = default;

bool CudnnAttention::PerSequence(at::Device device, const Options& options) {
  if (options.deterministic || options.per_sequence) return true;
  int major = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device.index());
  return major == 8 || major == 12;
}

bool CudnnAttention::Supports(const at::Tensor& x, int64_t head_dim) {
  return x.is_cuda() && x.scalar_type() == at::kBFloat16 && (head_dim == 64 || head_dim == 128);
}

at::Tensor CudnnAttention::Forward(const PackedLengths& lengths, const AttentionHeads& in,
                                   const at::Tensor& out) {
  at::Tensor lse = at::empty({out.size(0) * out.size(1)}, out.options().dtype(at::kFloat));
  impl_->Run(lengths, {.in = in, .out = out, .lse = lse});
  return lse;
}

void CudnnAttention::Backward(const PackedLengths& lengths, const AttentionHeads& in,
                              const at::Tensor& out, const at::Tensor& lse, const at::Tensor& d_out,
                              const AttentionHeads& d_in) {
  impl_->Run(lengths, {.in = in, .out = out, .lse = lse, .d_out = d_out, .d_in = d_in});
}

int64_t CudnnAttention::plans_made() const { return impl_->plans_made; }
double CudnnAttention::plan_seconds() const { return impl_->plan_seconds; }

}  // namespace tritonrl
