#include "exec/device/device.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/device/bytes.h"
#include "exec/device/compute_operators.h"
#include "exec/device/neutral_operators.h"
#include "exec/device/torch_errors.h"

namespace tritonrl::device {
namespace {

// What constructors do with a few numbers, as the largest weight for a scale.
constexpr int64_t kMaxSmallOfWeights = 256;
constexpr int64_t kMaxRandomElementsRead = 64;

int64_t BytesIn(const TensorRef& tensor) { return tensor.elements() * BytesOf(tensor.dtype); }

// Tags of a value's elements, as Tags() gives them.
at::Tensor TagsOf(const Value& value, StorageTable& memory) {
  if (value.kind == Value::Kind::kTensor) return memory.Tags(value.tensor);
  const int64_t size = value.host.element_size();
  const at::Tensor bytes =
      at::full({std::max<int64_t>(value.host.numel(), 1) * size}, static_cast<int64_t>(Tag::kHost),
               at::TensorOptions().dtype(at::kByte).device(memory.device()));
  return bytes.view(TagType(size)).narrow(0, 0, value.host.numel()).reshape(value.host.sizes());
}

// The geometry of a tensor that gets a storage of its own.
absl::StatusOr<TensorRef> GeometryOf(const at::Tensor& tensor) {
  TensorRef geometry;
  geometry.dtype = tensor.scalar_type();
  if (NameOf(geometry.dtype).empty() || tensor.layout() != at::kStrided) {
    return absl::UnimplementedError("an operator returns a tensor of a type that is not held");
  }
  geometry.shape = tensor.sizes().vec();
  geometry.stride = tensor.strides().vec();
  RETURN_IF_ERROR(SpanOf(geometry).status());
  return geometry;
}

}  // namespace

Device::Device(Arena* arena, KernelCompiler* compiler, const Options& options)
    : options_(options),
      memory_(arena, options.limits),
      generators_(options.limits.max_generators, arena->device()),
      kernels_(compiler, options.limits) {}

absl::Status Device::Revive(int64_t storage) {
  const Storage* const live = memory_.Find(storage);
  if (undo_log_ != nullptr && live != nullptr) undo_log_->Keep(*live, memory_);
  return memory_.Revive(storage, /*poison=*/mode_ == RunMode::kFull);
}

absl::StatusOr<TensorRef> Device::PlaceNew(const at::Tensor& tensor, bool has_contents, bool again,
                                           size_t& next, std::vector<TensorRef>& made) {
  at::Tensor source = tensor;
  ASSIGN_OR_RETURN(TensorRef geometry, GeometryOf(tensor));
  if (has_contents && !HasDistinctElements(geometry)) {
    RETURN_IF_ERROR(CatchTorch([&] { source = tensor.contiguous(); }));
    ASSIGN_OR_RETURN(geometry, GeometryOf(source));
  }
  if (again) {
    if (next >= made.size() || made[next].shape != geometry.shape ||
        made[next].stride != geometry.stride || made[next].dtype != geometry.dtype) {
      return absl::FailedPreconditionError("a replayed operator gives tensors of another shape");
    }
    geometry.storage = made[next].storage;
    if (mode_ == RunMode::kTimed && has_contents && memory_.Adopt(geometry.storage, source)) {
      ++next;
      return geometry;
    }
    RETURN_IF_ERROR(Revive(geometry.storage));
  } else {
    ASSIGN_OR_RETURN(const int64_t span, SpanOf(geometry));
    int64_t bytes = 0;
    if (__builtin_mul_overflow(span, BytesOf(geometry.dtype), &bytes)) {
      return absl::ResourceExhaustedError("CUDA out of memory.");
    }
    ASSIGN_OR_RETURN(const Storage* storage, memory_.Allocate(bytes, geometry.dtype));
    geometry.storage = storage->number;
    made.push_back(geometry);
  }
  ++next;
  if (has_contents) {
    RETURN_IF_ERROR(CatchTorch([&] { memory_.View(geometry).copy_(source); }));
  }
  return geometry;
}

absl::StatusOr<Placed> Device::Place(const BoundCall& bound, const Returned& returned,
                                     bool has_contents, bool again, size_t& next,
                                     std::vector<TensorRef>& made) {
  Placed placed;
  placed.argument = returned.argument;
  placed.other = returned.other;
  if (placed.argument >= 0) placed.tensor = *bound.tensors[placed.argument];
  if (!returned.tensor.defined()) return placed;
  if (placed.argument >= 0 && returned.tensor.sizes() == placed.tensor.shape) {  // out=
    RETURN_IF_ERROR(CatchTorch([&] { memory_.View(placed.tensor).copy_(returned.tensor); }));
    return placed;
  }
  placed.is_new = true;
  ASSIGN_OR_RETURN(placed.tensor, PlaceNew(returned.tensor, has_contents, again, next, made));
  return placed;
}

// With `writes_out` arguments named out, which fit, get their results without a copy.
absl::StatusOr<std::vector<ReturnedList>> Device::RunOnDevice(const BoundCall& bound,
                                                              bool writes_out) {
  ArgumentRules rules;
  rules.writes_out = writes_out;
  rules.device = memory_.device();
  rules.generators = &generators_;
  rules.tensor = [this](const Value& value) {
    return value.kind == Value::Kind::kHost ? value.host : memory_.View(value.tensor);
  };
  // Memory without contents is made in the arena alone.
  const Treatment treatment = TreatmentOf(*bound.call);
  if (treatment == Treatment::kAllocate) rules.device = at::kMeta;
  const auto& arguments = bound.handle.schema().arguments();
  const bool takes_generator =
      std::any_of(arguments.begin(), arguments.end(),
                  [](const c10::Argument& argument) { return argument.name() == "generator"; });
  const bool draws = treatment == Treatment::kRandom || DrawsByDefault(bound.call->name);
  if (!draws || takes_generator) return Run(bound, rules);
  absl::StatusOr<std::vector<ReturnedList>> returned = absl::InternalError("");
  generators_.WithDefault([&] { returned = Run(bound, rules); });
  return returned;
}

absl::StatusOr<std::vector<PlacedList>> Device::RunOperator(const BoundCall& bound, Phase phase,
                                                            bool again,
                                                            std::vector<TensorRef>& made) {
  const Treatment treatment = TreatmentOf(*bound.call);
  if (undo_log_ != nullptr && (bound.in_place() || bound.has_out())) {
    for (const TensorRef* tensor : bound.tensors) {
      undo_log_->Keep(*memory_.Find(tensor->storage), memory_);
    }
  }
  const bool writes_out = mode_ == RunMode::kTimed && again && made.empty();
  auto run = RunOnDevice(bound, writes_out);
  if (absl::IsResourceExhausted(run.status())) {
    memory_.Trim();
    run = RunOnDevice(bound, writes_out);
    if (absl::IsResourceExhausted(run.status())) memory_.NoteLack(0);
  }
  ASSIGN_OR_RETURN(const std::vector<ReturnedList> returned, std::move(run));
  std::vector<PlacedList> results;
  size_t next = 0;
  for (const ReturnedList& list : returned) {
    PlacedList placed;
    placed.is_list = list.is_list;
    for (const Returned& item : list.items) {
      const bool has_contents = treatment != Treatment::kAllocate;
      ASSIGN_OR_RETURN(Placed one, Place(bound, item, has_contents, again, next, made));
      placed.items.push_back(std::move(one));
    }
    results.push_back(std::move(placed));
  }
  if (mode_ == RunMode::kFull) RETURN_IF_ERROR(TagResults(bound, phase, results));
  return results;
}

void Device::TagCopy(const BoundCall& bound) {
  const TensorRef& target = bound.Find("self")->tensor;
  const Value& source = *bound.Find("src");
  if (target.elements() == 0) return;
  if (source.kind != Value::Kind::kTensor) {
    memory_.Fill(target, static_cast<uint8_t>(Tag::kHost));
    return;
  }
  if (source.tensor.dtype == target.dtype) {
    memory_.Tags(target).copy_(memory_.Tags(source.tensor));
    return;
  }
  const at::Tensor tags =
      memory_.TagsOfByte(source.tensor, 0).bitwise_or(static_cast<int64_t>(kConverted));
  for (int64_t byte = 0; byte < BytesOf(target.dtype); ++byte) {
    memory_.TagsOfByte(target, byte).copy_(tags);
  }
}

absl::Status Device::TagJoin(const BoundCall& bound, const TensorRef& result) {
  ArgumentRules rules;
  rules.tensor = [this](const Value& value) { return TagsOf(value, memory_); };
  ASSIGN_OR_RETURN(const auto tags, Run(bound, rules));
  if (tags.size() != 1 || tags[0].items.size() != 1 || !tags[0].items[0].tensor.defined()) {
    return absl::InternalError("a joining operator gives no tensor");
  }
  return CatchTorch([&] { memory_.Tags(result).copy_(tags[0].items[0].tensor); });
}

// Initialisers scale what they drew; the product of two draws is none of theirs.
void Device::NoteOfWeights(const BoundCall& bound, int64_t random) {
  int64_t elements = bound.most_elements();
  if (elements <= limits().max_small_elements) {
    small_of_weights_ += elements;
    if (small_of_weights_ > kMaxSmallOfWeights) elements = small_of_weights_;
  }
  const std::string& name = bound.call->name;
  const bool is_product = random > 1 && (name.rfind("mul", 0) == 0 || name.rfind("div", 0) == 0);
  int64_t& most = of_weights_[is_product ? "products of two" : name];
  most = std::max(most, elements);
}

void Device::NoteLaunchOfInit(const LaunchCommand& launch) {
  const std::vector<Storage*> storages = StoragesOf(launch);
  const auto random = static_cast<uint8_t>(Tag::kRandom);
  const bool of_random = std::any_of(storages.begin(), storages.end(), [&](Storage* storage) {
    return HasByte(memory_.device(), storage->shadow.get(), random, storage->bytes);
  });
  if (!of_random) return;
  for (Storage* const storage : storages) {
    if (ReplaceByte(memory_.device(), storage->shadow.get(), static_cast<uint8_t>(Tag::kKernel),
                    random, storage->bytes)) {
      of_weights_by_kernels_[storage->number] = kernels_.Find(launch.kernel)->name;
    }
  }
}

void Device::NoteReadOfInit(const TensorRef& tensor) {
  if (!memory_.HasTag(tensor, Tag::kRandom)) return;
  random_elements_read_ += tensor.elements();
  if (random_elements_read_ > kMaxRandomElementsRead)
    of_weights_["the host"] = random_elements_read_;
}

void Device::EndInit() {
  for (const auto& [storage, kernel] : of_weights_by_kernels_) {
    const Storage* const made = memory_.Find(storage);
    if (made == nullptr) continue;
    int64_t& most = of_weights_[absl::StrCat("kernel ", kernel)];
    most = std::max(most, made->bytes / BytesOf(made->made_as));
  }
  of_weights_by_kernels_.clear();
}

absl::Status Device::TagResults(const BoundCall& bound, Phase phase,
                                const std::vector<PlacedList>& results) {
  const Treatment treatment = TreatmentOf(*bound.call);
  if (treatment == Treatment::kAllocate) return absl::OkStatus();
  std::vector<TensorRef> written;
  for (const PlacedList& list : results) {
    for (const Placed& item : list.items) {
      if (item.is_new || item.argument >= 0) written.push_back(item.tensor);
    }
  }
  const bool over_kernel = phase == Phase::kForward && treatment == Treatment::kFill;
  OperatorTraffic& traffic = traffic_.operators[bound.call->name];
  ++traffic.calls;
  const bool reads = treatment != Treatment::kFill && treatment != Treatment::kRandom;
  if (reads) {
    for (const TensorRef* tensor : bound.tensors) traffic.bytes += BytesIn(*tensor);
  }
  if (treatment != Treatment::kCopy) {  // its target is one of its tensors
    for (const TensorRef& tensor : written) traffic.bytes += BytesIn(tensor);
  }
  if (treatment == Treatment::kOther) traffic.flops += OperatorFlops(bound, written);
  for (const TensorRef& tensor : written) {
    traffic_.neutral_bytes += BytesIn(tensor);
    if (over_kernel && memory_.HasTag(tensor, Tag::kKernel)) ++traffic_.fills_over_kernel_bytes;
  }
  if (treatment == Treatment::kCopy) return CatchTorch([&] { TagCopy(bound); });
  bool one_type = written.size() == 1;
  for (const TensorRef* tensor : bound.tensors) {
    one_type = one_type && tensor->dtype == written[0].dtype;
  }
  if (treatment == Treatment::kJoin && one_type) return TagJoin(bound, written[0]);
  Tag tag = phase == Phase::kForward ? Tag::kSmall : Tag::kConstant;
  if (treatment == Treatment::kFill) tag = Tag::kConstant;
  const bool draws = treatment == Treatment::kRandom || DrawsByDefault(bound.call->name);
  const bool may_use_weights =
      phase == Phase::kInit && (treatment == Treatment::kOther || treatment == Treatment::kJoin);
  const auto random =
      !may_use_weights
          ? 0
          : std::count_if(bound.tensors.begin(), bound.tensors.end(), [&](const TensorRef* tensor) {
              return memory_.HasTag(*tensor, Tag::kRandom);
            });
  // On more than a few elements of forward these are masks.
  const bool of_mask = phase == Phase::kForward && treatment == Treatment::kOther &&
                       bound.most_elements() > options_.limits.max_small_elements;
  if (draws || random > 0 || of_mask) tag = Tag::kRandom;
  if (random > 0 && !draws && treatment == Treatment::kOther) NoteOfWeights(bound, random);
  return CatchTorch([&] {
    for (const TensorRef& tensor : written) memory_.Fill(tensor, static_cast<uint8_t>(tag));
  });
}

}  // namespace tritonrl::device
