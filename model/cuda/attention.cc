#include "model/cuda/attention.h"

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

#include "model/cuda/attention_plan.h"

namespace tritonrl {
namespace {

constexpr size_t kMostPlans = 256;
constexpr size_t kMostLengths = 4096;  // that are remembered

using Places = std::unordered_map<int64_t, void*>;

// Operands of one call; those of the backward are undefined in a forward.
struct Operands {
  AttentionHeads in;
  at::Tensor out, lse, d_out;
  AttentionHeads d_in;

  bool backward() const { return d_out.defined(); }

  // Some rows, and of these some heads: `share` of `shares` equal ones. The log-sum-exps are [H, T]
  // of the rows here.
  Operands Part(int64_t begin, int64_t length, int64_t share, int64_t shares) const {
    const auto part = [&](const at::Tensor& x) {
      if (!x.defined()) return at::Tensor();
      const int64_t heads = x.size(1) / shares;
      return x.narrow(0, begin, length).narrow(1, share * heads, heads);
    };
    const auto all = [&](const AttentionHeads& x) {
      return AttentionHeads{part(x.q), part(x.k), part(x.v)};
    };
    const int64_t heads = in.q.size(1), each = heads / shares * length;
    return {all(in), part(out), lse.narrow(0, begin * heads + share * each, each), part(d_out),
            all(d_in)};
  }

  AttentionShape Shape() const {
    AttentionShape shape = {
        .backward = backward(), .heads = in.q.size(1), .keys = in.k.size(1), .dim = in.q.size(2)};
    size_t next = 0;
    for (const at::Tensor* x : {&in.q, &in.k, &in.v, &out, &d_out, &d_in.q, &d_in.k, &d_in.v}) {
      shape.strides[next++] = x->defined() ? x->stride(0) : 0;
    }
    return shape;
  }

  Places Where() const {
    Places places = {{kQ, in.q.data_ptr()},
                     {kK, in.k.data_ptr()},
                     {kV, in.v.data_ptr()},
                     {kOut, out.data_ptr()},
                     {kLse, lse.data_ptr()}};
    if (backward()) {
      places[kDOut] = d_out.data_ptr();
      places[kDQ] = d_in.q.data_ptr();
      places[kDK] = d_in.k.data_ptr();
      places[kDV] = d_in.v.data_ptr();
    }
    return places;
  }
};

// A token that sees itself alone, which cuDNN does not take: out = v, and only v has a gradient.
void OneToken(const Operands& at) {
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
    int major = 0;
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device.index());
    one_by_one = options.deterministic || major == 8 || major == 12;
  }
  ~Impl() {
    plans.clear();
    cudnnDestroy(handle);
  }

  const AttentionPlan& PlanFor(const AttentionShape& shape) {
    const auto found = plans.find(shape);
    if (found != plans.end()) return found->second;
    if (plans.size() >= kMostPlans) {
      c10::cuda::device_synchronize();  // kernels of the old ones may still run
      plans.clear();
    }
    const auto start = std::chrono::steady_clock::now();
    const AttentionPlan& plan =
        plans.emplace(shape, BuildAttentionPlan(shape, handle)).first->second;
    plan_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ++plans_made;
    return plan;
  }

  void Execute(const AttentionPlan& plan, Places places) {
    const auto room = c10::cuda::CUDACachingAllocator::get()->allocate(
        std::max<int64_t>(1, plan.graph->get_workspace_size()));
    auto error = plan.graph->execute(handle, places, room.get());
    TORCH_CHECK(error.is_good(), "cuDNN attention: ", error.get_message());
  }

  // Sequences of a bucket in one call.
  void RunBucket(const AttentionBucket& bucket, const Operands& operands) {
    AttentionShape shape = operands.Shape();
    shape.sequences = bucket.count();
    shape.max_length = bucket.max_length;
    const AttentionPlan& plan = PlanFor(shape);
    Places places = operands.Where();
    for (const auto& [stride, uid] : plan.offsets) {
      TORCH_CHECK(operands.out.size(0) <= std::numeric_limits<int32_t>::max() / stride,
                  "cuDNN attention: ", operands.out.size(0), " rows ", stride,
                  " elements apart are more than 2^31 elements; make the micro-batch smaller");
      places[uid] = bucket.OffsetsFor(stride).data_ptr();
    }
    places[kLengths] = bucket.lengths.data_ptr();
    Execute(plan, std::move(places));
  }

  // One sequence by itself.
  void RunSequence(int64_t begin, int64_t length, const Operands& operands) {
    if (length == 1) return OneToken(operands.Part(begin, 1, 0, 1));
    const bool ordered = options.deterministic && operands.backward();
    const int64_t calls =
        ordered ? CallsForDeterminism(operands.in.q.size(1), operands.in.k.size(1), length) : 1;
    for (int64_t i = 0; i < calls; ++i) {
      const Operands part = operands.Part(begin, length, i, calls);
      AttentionShape shape = part.Shape();
      shape.dense = true;
      shape.deterministic = ordered;
      shape.max_length = length;
      Execute(PlanFor(shape), part.Where());
    }
  }

  // Whether a bucket is one sequence that gets a call for its length.
  bool Exact(const AttentionBucket& bucket, const PackedLengths& lengths) {
    if (!bucket.exact.has_value()) {
      const int64_t length = bucket.sequences.size() == 1 ? lengths.length(bucket.sequences[0]) : 0;
      bucket.exact = length > 0 && length >= options.dense_from && !seen.insert(length).second;
      if (seen.size() > kMostLengths) seen.clear();
    }
    return *bucket.exact;
  }

  void Run(const PackedLengths& lengths, const Operands& operands) {
    const std::lock_guard<std::mutex> lock(mutex);
    const c10::cuda::CUDAGuard guard(device);
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(device.index()).stream();
    TORCH_CHECK(cudnnSetStream(handle, stream) == CUDNN_STATUS_SUCCESS, "cuDNN: no stream");
    for (const AttentionBucket& bucket : lengths.buckets) {
      const std::vector<int64_t>& sequences = bucket.sequences;
      if (!one_by_one && !Exact(bucket, lengths)) {
        RunBucket(bucket, operands);
        continue;
      }
      for (const int64_t i : sequences) {
        RunSequence(lengths.begin(i), lengths.length(i), operands);
      }
    }
  }

  const at::Device device;
  const Options options;
  bool one_by_one = false;
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

bool CudnnAttention::Takes(const at::Tensor& x, int64_t head_dim) {
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
