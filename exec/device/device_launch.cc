#include <string.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "exec/device/bytes.h"
#include "exec/device/device.h"
#include "exec/device/json.h"
#include "exec/device/near_copies.h"
#include "exec/device/torch_errors.h"

namespace tritonrl::device {
namespace {

constexpr int64_t kMaxFollowedBytes = int64_t{2} << 30;  // of the storages of a launch
constexpr int64_t kMaxTableBytes = 1 << 20;
constexpr size_t kMaxArguments = 1'024;
constexpr size_t kMaxFindingsOfSession = 10 * ttir::kMaxFindings;
// A loop over a splat pointer counts more bytes than anything can move.
constexpr double kMostBytes = 1e18;

void AddOnce(Storage* storage, std::vector<Storage*>& storages) {
  if (storage == nullptr) return;
  if (std::find(storages.begin(), storages.end(), storage) == storages.end()) {
    storages.push_back(storage);
  }
}

// One whose address a kernel has as a number.
void AddAddressed(Storage* storage, std::vector<Storage*>& storages) {
  if (storage != nullptr) storage->addressed = true;
  AddOnce(storage, storages);
}

// Gives the copied elements the values and tags that they had where they come from.
void TakeCopied(const CopiedElements& copied, int64_t from_bytes, const Storage& source,
                int64_t to_bytes, at::Device device, Storage& target) {
  const at::Tensor from_tags = BytesOnHost(device, source.shadow.get(), source.bytes);
  const at::Tensor data = BytesOnHost(device, target.data, target.bytes);
  const at::Tensor tags = BytesOnHost(device, target.shadow.get(), target.bytes);
  const auto* const values = static_cast<const char*>(copied.converted.const_data_ptr());
  for (size_t i = 0; i < copied.is_copied.size(); ++i) {
    if (copied.is_copied[i] == 0) continue;
    const auto number = static_cast<int64_t>(i);
    const int64_t to = copied.to + number * to_bytes;
    memcpy(data.mutable_data_ptr<uint8_t>() + to, values + number * to_bytes,
           static_cast<size_t>(to_bytes));
    memset(tags.mutable_data_ptr<uint8_t>() + to,
           from_tags.const_data_ptr<uint8_t>()[copied.from + number * from_bytes],
           static_cast<size_t>(to_bytes));
  }
  if (device.is_cpu()) return;
  CopyFromHost(device, target.data, data.const_data_ptr(), target.bytes);
  CopyFromHost(device, target.shadow.get(), tags.const_data_ptr(), target.bytes);
}

}  // namespace

absl::Status Device::CheckLaunch(const LaunchCommand& launch) {
  if (kernels_.Find(launch.kernel) == nullptr) return Hostile("a kernel that does not exist");
  int64_t programs = 1;
  for (const int32_t size : launch.grid) {
    if (size < 0) return Hostile("a grid of negative size");
    if (__builtin_mul_overflow(programs, static_cast<int64_t>(size), &programs) ||
        programs > limits().max_programs) {
      return Hostile("a grid of too many programs");
    }
  }
  if (launch.arguments.size() > kMaxArguments) return Hostile("a launch of too many arguments");
  for (const Value& argument : launch.arguments) {
    switch (argument.kind) {
      case Value::Kind::kTensor:
        RETURN_IF_ERROR(memory_.Check(argument.tensor));
        break;
      case Value::Kind::kInteger:
      case Value::Kind::kBool:
      case Value::Kind::kFloat:
        break;
      default:
        return Hostile("an argument of a launch that is no tensor or number");
    }
  }
  return absl::OkStatus();
}

std::vector<Storage*> Device::StoragesOf(const LaunchCommand& launch) {
  std::vector<Storage*> storages;
  for (const Value& argument : launch.arguments) {
    if (argument.kind == Value::Kind::kInteger) {
      AddAddressed(memory_.FindAddress(static_cast<uint64_t>(argument.integer)), storages);
    }
    if (argument.kind == Value::Kind::kTensor) {
      AddOnce(memory_.Find(argument.tensor.storage), storages);
    }
  }
  for (size_t i = 0; i < storages.size() && i < kMaxArguments; ++i) {  // a table may name tables
    const Storage* const storage = storages[i];
    const bool table = storage->made_as == at::kLong || storage->made_as == at::kUInt64;
    if (!table || storage->bytes > kMaxTableBytes) continue;
    const at::Tensor contents = BytesOnHost(memory_.device(), storage->data, storage->bytes);
    for (int64_t at = 0; at + 8 <= storage->bytes; at += 8) {
      uint64_t address = 0;
      memcpy(&address, contents.const_data_ptr<uint8_t>() + at, sizeof(address));
      AddAddressed(memory_.FindAddress(address), storages);
    }
  }
  return storages;
}

std::vector<LaunchArgument> Device::ArgumentsOf(const LaunchCommand& launch) {
  std::vector<LaunchArgument> arguments;
  for (const Value& value : launch.arguments) {
    LaunchArgument argument;
    if (value.kind == Value::Kind::kTensor) {
      const Storage& storage = *memory_.Find(value.tensor.storage);
      argument.kind = LaunchArgument::Kind::kPointer;
      argument.data = storage.data + value.tensor.offset * BytesOf(value.tensor.dtype);
      argument.storage = storage.data;
      argument.storage_bytes = storage.bytes;
      argument.shadow = storage.shadow.get();
      if (const auto span = SpanOf(value.tensor); span.ok() && *span > 0) {
        argument.view_bytes = (*span - value.tensor.offset) * BytesOf(value.tensor.dtype);
      }
      // An empty tensor's place may be anywhere.
      if (argument.data > storage.data + storage.bytes) argument.data = storage.data;
    } else if (value.kind == Value::Kind::kFloat) {
      argument.kind = LaunchArgument::Kind::kFloat;
      argument.number = value.number;
    } else {
      argument.integer = value.integer;
    }
    arguments.push_back(argument);
  }
  return arguments;
}

// A kernel reaches only what its arguments name: what is undone after a benchmark, and whose bytes
// are marked, is found in the same way.
LaunchSettings Device::SettingsOf(const std::vector<Storage*>& storages) {
  LaunchSettings settings;
  settings.threads = options_.threads;
  settings.print = options_.print;
  settings.shadow_tag = static_cast<uint8_t>(Tag::kKernel);
  settings.expired = [deadline = deadline_] { return absl::Now() > deadline; };
  for (const Storage* const storage : storages) {
    if (storage->bytes == 0) continue;
    settings.reachable.push_back({absl::StrCat("storage ", storage->number), storage->data,
                                  storage->bytes, storage->shadow.get()});
  }
  return settings;
}

// Whether an argument holds what operators made. Copies of results of kernels are those of kernels.
bool Device::MayCopyWork(const LaunchCommand& launch, const std::vector<Storage*>& storages) {
  int64_t bytes = 0;
  for (const Storage* const storage : storages) bytes += storage->bytes;
  // They are looked for on the host.
  if (!memory_.device().is_cpu() && bytes > kMaxFollowedBytes) return false;
  return std::any_of(
      launch.arguments.begin(), launch.arguments.end(), [this](const Value& argument) {
        if (argument.kind != Value::Kind::kTensor ||
            originals_->count(argument.tensor.storage) > 0) {
          return false;
        }
        const Storage& source = *memory_.Find(argument.tensor.storage);
        const auto counts = CountBytes(memory_.device(), source.shadow.get(), source.bytes);
        int64_t others = source.bytes;
        for (const Tag tag : {Tag::kUnwritten, Tag::kKernel, Tag::kSmall}) {
          const auto number = static_cast<size_t>(tag);
          others -= counts[number] + counts[number | kConverted];
        }
        return others > 0;
      });
}

absl::Status Device::FollowCopies(const LaunchCommand& launch,
                                  const std::vector<Storage*>& storages,
                                  const std::vector<at::Tensor>& before) {
  const auto place = [](const TensorRef& tensor) { return tensor.offset * BytesOf(tensor.dtype); };
  const auto index = [&](const TensorRef& tensor) {
    return std::find(storages.begin(), storages.end(), memory_.Find(tensor.storage)) -
           storages.begin();
  };
  for (const Value& to : launch.arguments) {
    if (to.kind != Value::Kind::kTensor) continue;
    Storage& target = *memory_.Find(to.tensor.storage);
    const ArgumentBytes old = {before[index(to.tensor)].const_data_ptr<uint8_t>(), target.bytes,
                               place(to.tensor), to.tensor.dtype};
    at::Tensor now;  // once for all that it may be a copy of
    RETURN_IF_ERROR(
        CatchTorch([&] { now = BytesOnHost(memory_.device(), target.data, target.bytes); }));
    for (const Value& from : launch.arguments) {
      if (from.kind != Value::Kind::kTensor || from.tensor.storage == to.tensor.storage ||
          originals_->count(from.tensor.storage) > 0) {
        continue;
      }
      const Storage& source = *memory_.Find(from.tensor.storage);
      const ArgumentBytes held = {before[index(from.tensor)].const_data_ptr<uint8_t>(),
                                  source.bytes, place(from.tensor), from.tensor.dtype};
      bool found = false;
      RETURN_IF_ERROR(CatchTorch([&] {
        const std::optional<CopiedElements> copied =
            FindCopy(old, now.const_data_ptr<uint8_t>(), held, copy_tolerance_);
        found = copied.has_value();
        if (!found) return;
        TakeCopied(*copied, BytesOf(from.tensor.dtype), source, BytesOf(to.tensor.dtype),
                   memory_.device(), target);
      }));
      if (found) break;
    }
  }
  return absl::OkStatus();
}

void Device::AddFindings(LaunchFindings& findings) {
  findings_.complete = findings_.complete && findings.complete;
  for (Finding& finding : findings.list) {
    if (findings_.list.size() < kMaxFindingsOfSession) {
      findings_.list.push_back(std::move(finding));
    } else {
      findings_.complete = false;
    }
  }
}

absl::Status Device::RunBare(const LaunchCommand& launch) {
  const KernelEntry* const entry = kernels_.Find(launch.kernel);
  LaunchSettings settings = SettingsOf({});
  settings.bare = true;
  return AddContext(entry->kernel->Launch(launch.grid, ArgumentsOf(launch), settings),
                    absl::StrCat("kernel ", entry->name));
}

absl::Status Device::RunLaunch(const LaunchCommand& launch, LaunchCounts* counts) {
  const KernelEntry* const entry = kernels_.Find(launch.kernel);
  if (std::count(launch.grid.begin(), launch.grid.end(), 0) > 0) return absl::OkStatus();
  if (bare_ && !memory_.device().is_cpu()) return RunBare(launch);
  const std::vector<Storage*> storages = StoragesOf(launch);
  if (undo_log_ != nullptr) {
    for (const Storage* storage : storages) undo_log_->Keep(*storage, memory_);
  }
  LaunchSettings settings = SettingsOf(storages);
  settings.counts = counts;
  std::vector<at::Tensor> before;
  const bool follows = originals_ != nullptr && MayCopyWork(launch, storages);
  if (follows) {
    for (const Storage* storage : storages) {
      before.push_back(BytesAt(memory_.device(), storage->data, storage->bytes)
                           .to(at::kCPU, /*non_blocking=*/false, /*copy=*/true));
    }
  }
  LaunchFindings findings;
  if (options_.check) settings.findings = &findings;
  const absl::Status status = entry->kernel->Launch(launch.grid, ArgumentsOf(launch), settings);
  AddFindings(findings);
  if (follows && status.ok()) RETURN_IF_ERROR(FollowCopies(launch, storages, before));
  if (counts != nullptr) {
    const double moved = counts->load_bytes + counts->store_bytes + counts->atomic_bytes;
    const double sum = static_cast<double>(traffic_.kernel_bytes) + moved;
    traffic_.kernel_bytes = static_cast<int64_t>(std::min(sum, kMostBytes));
  } else {
    for (const Storage* storage : storages) traffic_.kernel_bytes += storage->bytes;
  }
  return AddContext(status, absl::StrCat("kernel ", entry->name));
}

}  // namespace tritonrl::device
