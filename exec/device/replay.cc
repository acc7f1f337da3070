#include "exec/device/replay.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <string.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/device/bytes.h"
#include "exec/device/torch_errors.h"

namespace tritonrl::device {
namespace {

// Memory that a GPU copies to by itself is slow to make, and torch keeps it.
constexpr int64_t kMaxPinnedBytes = int64_t{64} << 20;
constexpr int64_t kScaledAtOnce = int64_t{1} << 24;  // elements
constexpr int64_t kWindowAlignment = 64;

bool SameBytes(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() &&
         (a.numel() == 0 || memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0);
}

// Runs one command; counts what it is.
class CommandRunner {
 public:
  CommandRunner(Phase phase, const RunOptions& options, Device& device)
      : phase_(phase), options_(options), device_(device) {}

  absl::Status operator()(const AllocateCommand& command) {
    return device_.Revive(command.storage);
  }
  absl::Status operator()(const OperatorCommand& command) {
    ASSIGN_OR_RETURN(const BoundCall bound, Bind(command.call));
    for (const TensorRef* tensor : bound.tensors) {
      RETURN_IF_ERROR(device_.memory().Check(*tensor));
    }
    std::vector<TensorRef> made = command.made;
    return device_.RunOperator(bound, phase_, /*again=*/true, made).status();
  }
  absl::Status operator()(const LaunchCommand& command) {
    RETURN_IF_ERROR(device_.CheckLaunch(command));
    LaunchCounts* counts = nullptr;
    if (options_.count) counts = &result_.counts.emplace_back();
    const int64_t number = result_.launches++;
    if (options_.skip != nullptr && options_.skip(command, number)) {
      ++result_.left_out;
      return absl::OkStatus();
    }
    return device_.RunLaunch(command, counts);
  }
  absl::Status operator()(const ReadCommand& command) {
    RETURN_IF_ERROR(device_.memory().Check(command.tensor));
    if (device_.bare()) return absl::OkStatus();
    return CatchTorch([&] {
      const at::Tensor now =
          device_.memory().View(command.tensor).resolve_conj().resolve_neg().contiguous().cpu();
      if (!SameBytes(now, command.seen)) ++result_.reads_that_differ;
    });
  }
  absl::Status operator()(const SeedCommand& command) {
    device_.generators().Seed(command.generator, command.seed);
    return absl::OkStatus();
  }
  absl::Status operator()(const FreeCommand& command) {
    for (const int64_t storage : command.storages) {
      if (device_.adopts()) device_.memory().GiveUpAdopted(storage);
      if (!device_.bare()) device_.memory().Free(storage);
    }
    return absl::OkStatus();
  }
  const RunResult& result() const { return result_; }

 private:
  Phase phase_;
  const RunOptions& options_;
  Device& device_;
  RunResult result_;
};

// The contents are there when the device was waited for.
at::Tensor QueueCopyToHost(const at::Tensor& dense) {
  const bool pinned = static_cast<int64_t>(dense.nbytes()) <= kMaxPinnedBytes;
  const auto options = at::TensorOptions().dtype(dense.scalar_type()).pinned_memory(pinned);
  at::Tensor host = at::empty(dense.sizes(), options);
  host.copy_(dense, /*non_blocking=*/true);
  return host;
}

absl::Status CopyTensorsOut(Value& value, Device& device, std::vector<TagCounts>* provenance) {
  if (value.kind == Value::Kind::kTensor) {
    StorageTable& memory = device.memory();
    RETURN_IF_ERROR(memory.Check(value.tensor));
    Value host;
    RETURN_IF_ERROR(CatchTorch([&] {
      if (provenance != nullptr) provenance->push_back(memory.Count(value.tensor));
      const at::Tensor dense = memory.View(value.tensor).resolve_conj().resolve_neg();
      host = Value::Host(memory.device().is_cpu() ? dense.clone(at::MemoryFormat::Contiguous)
                                                  : QueueCopyToHost(dense.contiguous()));
    }));
    value = std::move(host);
    return absl::OkStatus();
  }
  for (Value& item : value.items) RETURN_IF_ERROR(CopyTensorsOut(item, device, provenance));
  return absl::OkStatus();
}

// Only the checkpoint's storages stay live, so that replays do not add up.
void FreeOthers(const Checkpoint& checkpoint, Device& device) {
  std::vector<int64_t> others;
  device.memory().ForEachLive([&](Storage& storage) {
    if (!std::binary_search(checkpoint.storages.begin(), checkpoint.storages.end(),
                            storage.number)) {
      others.push_back(storage.number);
      storage.pinned = false;
    }
  });
  for (const int64_t number : others) device.memory().Free(number);
}

}  // namespace

Checkpoint TakeCheckpoint(Device& device) {
  Checkpoint checkpoint;
  device.memory().ForEachLive([&](Storage& storage) {
    checkpoint.contents.Keep(storage, device.memory());
    checkpoint.storages.push_back(storage.number);
  });
  checkpoint.generators = device.generators().Save();
  return checkpoint;
}

absl::Status ReturnTo(const Checkpoint& checkpoint, Device& device) {
  device.generators().Restore(checkpoint.generators);
  return checkpoint.contents.Restore(device.memory(), /*revive=*/true);
}

absl::StatusOr<RunResult> RunCommands(const CommandList& commands, Phase phase,
                                      const RunOptions& options, Device& device) {
  CommandRunner runner(phase, options, device);
  for (const auto& command : commands) RETURN_IF_ERROR(std::visit(runner, *command));
  return runner.result();
}

namespace {

// An input's bytes as they lie in its storage, which is found.
struct InputBytes {
  at::Tensor source;  // keeps the bytes
  Storage* storage = nullptr;
  int64_t count = 0;
};

bool IsInWindow(const at::Tensor& tensor, const Device& device) {
  return device.input_window() != nullptr && tensor.defined() && tensor.numel() > 0 &&
         device.input_window()->Contains(tensor.const_data_ptr());
}

// The source's.
at::Tensor SourceBytes(const InputBytes& bytes, at::Device place) {
  return BytesAt(place, const_cast<void*>(bytes.source.const_data_ptr()), bytes.count);
}

// The bytes as larger elements where that is possible, which are faster to compare.
at::Tensor Words(const at::Tensor& bytes) {
  return bytes.numel() % 8 == 0 ? bytes.view(at::kLong) : bytes;
}

// In parts, as there may be no room for another copy in float64.
void Scale(const InputBytes& bytes, at::ScalarType type, double scale, at::Device place) {
  const at::Tensor elements = BytesAt(place, bytes.storage->data, bytes.count).view(type);
  for (int64_t begin = 0; begin < elements.numel(); begin += kScaledAtOnce) {
    at::Tensor part = elements.narrow(0, begin, std::min(kScaledAtOnce, elements.numel() - begin));
    part.copy_(part.to(at::kDouble).mul_(scale));
  }
}

absl::StatusOr<InputBytes> FindInput(const at::Tensor& from, const TensorRef& to, Device& device) {
  if (from.scalar_type() != to.dtype || from.sizes() != to.shape) {
    return absl::InvalidArgumentError("an input has another shape or type than the recorded one");
  }
  InputBytes bytes;
  bytes.source =
      from.strides() == to.stride ? from : from.contiguous().as_strided(to.shape, to.stride);
  ASSIGN_OR_RETURN(const int64_t span, SpanOf(to));
  if (from.strides() != to.stride && span != from.numel()) {
    return absl::InvalidArgumentError("an input has other strides than the recorded one");
  }
  bytes.storage = device.memory().Find(to.storage);
  bytes.count = span * BytesOf(to.dtype);
  if (bytes.storage == nullptr || bytes.count > bytes.storage->bytes) {
    return absl::InternalError("an input's storage is missing");
  }
  return bytes;
}

}  // namespace

absl::StatusOr<WrittenInput> WriteInput(const at::Tensor& from, const TensorRef& to, Device& device,
                                        double scale) {
  const bool in_window = IsInWindow(from, device);
  const MappedWindow mapped(in_window ? device.input_window() : nullptr);
  RETURN_IF_ERROR(mapped.status());
  ASSIGN_OR_RETURN(const InputBytes bytes, FindInput(from, to, device));
  const at::Device place = device.memory().device();
  WrittenInput written{to, from, at::Tensor()};
  RETURN_IF_ERROR(CatchTorch([&] {
    if (in_window) {
      BytesAt(place, bytes.storage->data, bytes.count).copy_(SourceBytes(bytes, place));
    } else {
      CopyFromHost(place, bytes.storage->data, bytes.source.const_data_ptr(), bytes.count);
    }
    if (scale != 1 && at::isFloatingType(to.dtype)) Scale(bytes, to.dtype, scale, place);
    FillBytes(place, bytes.storage->shadow.get(), static_cast<uint8_t>(Tag::kInput), bytes.count);
    if (!in_window) written.kept = KeepBytes(place, bytes.storage->data, bytes.count);
  }));
  return written;
}

bool HoldsInput(const WrittenInput& input, Device& device) {
  const bool in_window = IsInWindow(input.source, device);
  const MappedWindow mapped(in_window ? device.input_window() : nullptr);
  const absl::StatusOr<InputBytes> bytes = FindInput(input.source, input.place, device);
  if (!bytes.ok() || !mapped.status().ok()) return false;
  const at::Device place = device.memory().device();
  if (in_window) {
    return at::equal(Words(BytesAt(place, bytes->storage->data, bytes->count)),
                     Words(SourceBytes(*bytes, place)));
  }
  if (!input.kept.defined()) {
    return EqualsHost(place, bytes->storage->data, bytes->source.const_data_ptr(), bytes->count);
  }
  return at::equal(BytesAt(place, bytes->storage->data, bytes->count), input.kept);
}

absl::StatusOr<Value> CopyOut(const Value& value, Device& device,
                              std::vector<TagCounts>* provenance) {
  Value copy = value;
  RETURN_IF_ERROR(CopyTensorsOut(copy, device, provenance));
  RETURN_IF_ERROR(CatchTorch([&] { WaitFor(device.memory().device()); }));
  return copy;
}

bool HoldInputs(const std::vector<WrittenInput>& inputs, Device& device) {
  const MappedWindow mapped(device.input_window());
  return std::all_of(inputs.begin(), inputs.end(),
                     [&](const WrittenInput& input) { return HoldsInput(input, device); });
}

namespace {

// Copies tensors to the window one behind the other.
class WindowWriter {
 public:
  WindowWriter(Device& device, std::vector<TagCounts>* provenance)
      : device_(device), window_(*device.output_window()), provenance_(provenance) {}

  absl::Status Write(Value& value) {
    for (Value& item : value.items) RETURN_IF_ERROR(Write(item));
    at::Tensor tensor = value.host;
    if (value.kind == Value::Kind::kTensor) {
      RETURN_IF_ERROR(device_.memory().Check(value.tensor));
      RETURN_IF_ERROR(CatchTorch([&] {
        if (provenance_ != nullptr) provenance_->push_back(device_.memory().Count(value.tensor));
        tensor = device_.memory().View(value.tensor);
      }));
    } else if (value.kind != Value::Kind::kHost) {
      return absl::OkStatus();
    }
    return CatchTorch([&] { value = Value::Host(Placed(tensor)); });
  }

 private:
  at::Tensor Placed(const at::Tensor& tensor) {
    const int64_t begin = (end_ + kWindowAlignment - 1) / kWindowAlignment * kWindowAlignment;
    const auto bytes = static_cast<int64_t>(tensor.nbytes());
    const at::TensorOptions options = at::TensorOptions().dtype(tensor.scalar_type());
    if (begin > window_.bytes() || bytes > window_.bytes() - begin) {
      return at::empty(tensor.sizes(), options.device(at::kMeta));
    }
    if (bytes == 0) return at::empty(tensor.sizes(), options);
    end_ = begin + bytes;
    const at::Tensor place = BytesAt(window_.device(), window_.base() + begin, bytes)
                                 .view(tensor.scalar_type())
                                 .view(tensor.sizes());
    return place.copy_(tensor, /*non_blocking=*/false);
  }

  Device& device_;
  Window& window_;
  std::vector<TagCounts>* provenance_;
  int64_t end_ = 0;
};

}  // namespace

absl::StatusOr<Value> HandOver(const Value& value, Device& device,
                               std::vector<TagCounts>* provenance) {
  if (device.output_window() == nullptr) return CopyOut(value, device, provenance);
  const MappedWindow mapped(device.output_window());
  RETURN_IF_ERROR(mapped.status());
  Value copy = value;
  RETURN_IF_ERROR(WindowWriter(device, provenance).Write(copy));
  RETURN_IF_ERROR(CatchTorch([&] { WaitFor(device.memory().device()); }));
  return copy;
}

absl::StatusOr<ReplayResult> Replay(const RecordedCall& call, const Checkpoint& checkpoint,
                                    const ReplayOptions& options, Device& device) {
  if (options.inputs.size() != call.inputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the call has ", call.inputs.size(), " tensors as inputs, not ", options.inputs.size()));
  }
  device.set_deadline(options.deadline);
  device.set_undo_log(nullptr);
  device.memory().set_poison(options.poison);
  FreeOthers(checkpoint, device);
  if (!options.keeps_state) RETURN_IF_ERROR(ReturnTo(checkpoint, device));
  std::vector<WrittenInput> written(call.inputs.size());
  {
    const MappedWindow mapped(device.input_window());
    RETURN_IF_ERROR(mapped.status());
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      RETURN_IF_ERROR(device.memory().Revive(call.inputs[i].storage));
      ASSIGN_OR_RETURN(written[i],
                       WriteInput(options.inputs[i], call.inputs[i], device, options.scale));
    }
  }
  device.generators().Seed(0, options.seed.value_or(call.seed));
  device.traffic() = Traffic();
  ReplayResult result;
  std::set<int64_t> originals(checkpoint.storages.begin(), checkpoint.storages.end());
  for (const TensorRef& input : call.inputs) originals.insert(input.storage);
  device.set_originals(options.follow_copies ? &originals : nullptr, options.copy_tolerance);
  auto run = RunCommands(call.commands, Phase::kForward, options.run, device);
  device.set_originals(nullptr);
  RETURN_IF_ERROR(run.status());
  result.run = *std::move(run);
  result.traffic = device.traffic();
  result.inputs_unchanged = options.scale == 1 && HoldInputs(written, device);
  ASSIGN_OR_RETURN(result.output, HandOver(call.output, device, &result.provenance));
  return result;
}

absl::StatusOr<RunResult> RunInit(const Recording& recording, uint64_t seed, Device& device) {
  device.set_undo_log(nullptr);
  FreeOthers(Checkpoint(), device);
  device.generators().Seed(0, seed);
  return RunCommands(recording.init, Phase::kInit, RunOptions(), device);
}

absl::StatusOr<std::vector<at::Tensor>> ReplayInit(const Recording& recording, uint64_t seed,
                                                   Device& device) {
  RETURN_IF_ERROR(RunInit(recording, seed, device).status());
  std::vector<at::Tensor> state;
  for (const auto& [name, tensor] : recording.state) {
    ASSIGN_OR_RETURN(Value copy, CopyOut(Value::Tensor(tensor), device, nullptr));
    state.push_back(std::move(copy.host));
  }
  return state;
}

}  // namespace tritonrl::device
