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

constexpr int64_t kMaxKeptOnHost = int64_t{2} << 30;  // of a launch
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

// Copies of the storages' bytes: on the device if it has room, else on the host if they are few.
// None: neither.
absl::StatusOr<std::vector<at::Tensor>> KeptBytes(const std::vector<Storage*>& storages,
                                                  StorageTable& memory) {
  std::vector<at::Tensor> kept;
  int64_t on_host = 0;
  for (const Storage* const storage : storages) {
    const at::Tensor bytes = BytesAt(memory.device(), storage->data, storage->bytes);
    absl::Status status = CatchTorch([&] { kept.push_back(bytes.clone()); });
    if (!status.ok() && !memory.device().is_cpu()) {
      memory.Trim();
      status = CatchTorch([&] { kept.push_back(bytes.clone()); });
    }
    if (status.ok()) continue;
    if (memory.device().is_cpu()) return status;
    on_host += storage->bytes;
    if (on_host > kMaxKeptOnHost) return std::vector<at::Tensor>();
    RETURN_IF_ERROR(CatchTorch([&] { kept.push_back(bytes.cpu()); }));
  }
  return kept;
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
bool Device::MayCopyWork(const LaunchCommand& launch) {
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
  const auto bytes = [this](const Storage& storage) {
    return BytesAt(memory_.device(), storage.data, storage.bytes);
  };
  const auto tags = [this](const Storage& storage) {
    return BytesAt(memory_.device(), storage.shadow.get(), storage.bytes);
  };
  for (const Value& to : launch.arguments) {
    if (to.kind != Value::Kind::kTensor) continue;
    const Storage& target = *memory_.Find(to.tensor.storage);
    const ArgumentBytes old = {before[index(to.tensor)], place(to.tensor), to.tensor.dtype};
    for (const Value& from : launch.arguments) {
      if (from.kind != Value::Kind::kTensor || from.tensor.storage == to.tensor.storage ||
          originals_->count(from.tensor.storage) > 0) {
        continue;
      }
      const Storage& source = *memory_.Find(from.tensor.storage);
      const ArgumentBytes held = {before[index(from.tensor)], place(from.tensor),
                                  from.tensor.dtype};
      std::optional<CopiedElements> copied;
      RETURN_IF_ERROR(CatchTorch([&] {
        copied = FindCopy(old, bytes(target), held, copy_tolerance_);
        if (!copied.has_value()) return;
        TakeCopied(*copied, held, tags(source), to.tensor.dtype, bytes(target), tags(target));
      }));
      if (copied.has_value()) break;
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
  if (mode_ != RunMode::kFull && !memory_.device().is_cpu()) return RunBare(launch);
  const std::vector<Storage*> storages = StoragesOf(launch);
  if (undo_log_ != nullptr) {
    for (const Storage* storage : storages) undo_log_->Keep(*storage, memory_);
  }
  LaunchSettings settings = SettingsOf(storages);
  settings.counts = counts;
  std::vector<at::Tensor> before;
  if (originals_ != nullptr && MayCopyWork(launch)) {
    ASSIGN_OR_RETURN(before, KeptBytes(storages, memory_));
  }
  LaunchFindings findings;
  if (options_.check) settings.findings = &findings;
  const absl::Status status = entry->kernel->Launch(launch.grid, ArgumentsOf(launch), settings);
  AddFindings(findings);
  if (!before.empty() && status.ok()) RETURN_IF_ERROR(FollowCopies(launch, storages, before));
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
