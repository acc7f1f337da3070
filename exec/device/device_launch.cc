#include <string.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "exec/device/device.h"
#include "exec/device/json.h"

namespace tritonrl::device {
namespace {

constexpr int64_t kMaxTableBytes = 1 << 20;
constexpr size_t kMaxArguments = 1'024;
constexpr size_t kMaxFindingsOfSession = 10 * ttir::kMaxFindings;
// A loop over a splat pointer counts more bytes than anything can move.
constexpr double kMostBytes = 1e18;

struct ByteRange {
  int64_t begin = 0, end = 0;
};

// From the first to the last byte that is another one now.
ByteRange ChangedBytes(const std::vector<char>& before, const Storage& storage) {
  ByteRange range{0, storage.bytes};
  while (range.begin < range.end && before[range.begin] == storage.data[range.begin]) ++range.begin;
  while (range.end > range.begin && before[range.end - 1] == storage.data[range.end - 1]) {
    --range.end;
  }
  return range;
}

void AddOnce(Storage* storage, std::vector<Storage*>& storages) {
  if (storage == nullptr) return;
  if (std::find(storages.begin(), storages.end(), storage) == storages.end()) {
    storages.push_back(storage);
  }
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
      AddOnce(memory_.FindAddress(static_cast<uint64_t>(argument.integer)), storages);
    }
    if (argument.kind == Value::Kind::kTensor) {
      AddOnce(memory_.Find(argument.tensor.storage), storages);
    }
  }
  for (size_t i = 0; i < storages.size() && i < kMaxArguments; ++i) {  // a table may name tables
    const Storage* const storage = storages[i];
    const bool table = storage->made_as == at::kLong || storage->made_as == at::kUInt64;
    if (!table || storage->bytes > kMaxTableBytes) continue;
    for (int64_t at = 0; at + 8 <= storage->bytes; at += 8) {
      uint64_t address = 0;
      memcpy(&address, storage->data + at, sizeof(address));
      AddOnce(memory_.FindAddress(address), storages);
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

void Device::FollowCopies(const LaunchCommand& launch, const std::vector<Storage*>& storages,
                          const std::vector<std::vector<char>>& before) {
  const auto place = [](const TensorRef& tensor) { return tensor.offset * BytesOf(tensor.dtype); };
  const auto index = [&](const TensorRef& tensor) {
    return std::find(storages.begin(), storages.end(), memory_.Find(tensor.storage)) -
           storages.begin();
  };
  for (const Value& to : launch.arguments) {
    if (to.kind != Value::Kind::kTensor) continue;
    Storage& target = *memory_.Find(to.tensor.storage);
    const ByteRange changed = ChangedBytes(before[index(to.tensor)], target);
    if (changed.begin == changed.end) continue;
    for (const Value& from : launch.arguments) {
      if (from.kind != Value::Kind::kTensor || from.tensor.storage == to.tensor.storage ||
          originals_->count(from.tensor.storage) > 0) {
        continue;
      }
      const std::vector<char>& bytes = before[index(from.tensor)];
      const int64_t begin = changed.begin - place(to.tensor) + place(from.tensor);
      const int64_t count = changed.end - changed.begin;
      if (begin < 0 || begin + count > static_cast<int64_t>(bytes.size()) ||
          memcmp(bytes.data() + begin, target.data + changed.begin, static_cast<size_t>(count)) !=
              0) {
        continue;
      }
      const uint8_t* const tags = memory_.Find(from.tensor.storage)->shadow.get() + begin;
      std::copy_n(tags, count, target.shadow.get() + changed.begin);
      break;
    }
  }
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

absl::Status Device::RunLaunch(const LaunchCommand& launch, LaunchCounts* counts) {
  const KernelEntry* const entry = kernels_.Find(launch.kernel);
  if (std::count(launch.grid.begin(), launch.grid.end(), 0) > 0) return absl::OkStatus();
  const std::vector<Storage*> storages = StoragesOf(launch);
  if (undo_log_ != nullptr) {
    for (const Storage* storage : storages) undo_log_->Keep(*storage);
  }
  LaunchSettings settings = SettingsOf(storages);
  settings.counts = counts;
  std::vector<std::vector<char>> before;
  if (originals_ != nullptr) {
    for (const Storage* storage : storages) {
      before.emplace_back(storage->data, storage->data + storage->bytes);
    }
  }
  LaunchFindings findings;
  if (options_.check) settings.findings = &findings;
  const absl::Status status = entry->kernel->Launch(launch.grid, ArgumentsOf(launch), settings);
  AddFindings(findings);
  if (originals_ != nullptr) FollowCopies(launch, storages, before);
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
