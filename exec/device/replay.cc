#include "exec/device/replay.h"

#include <string.h>

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/device/call_inputs.h"
#include "exec/device/hand_over.h"
#include "exec/device/torch_errors.h"

namespace tritonrl::device {
namespace {

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
    if (options_.check != nullptr) RETURN_IF_ERROR(options_.check(bound));
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
    RETURN_IF_ERROR(device_.RunLaunch(command, counts));
    if (options_.launched != nullptr) options_.launched(command);
    return absl::OkStatus();
  }
  absl::Status operator()(const ReadCommand& command) {
    RETURN_IF_ERROR(device_.memory().Check(command.tensor));
    if (device_.mode() != RunMode::kFull) return absl::OkStatus();
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
      if (device_.mode() == RunMode::kTimed) device_.memory().GiveUpAdopted(storage);
      if (device_.mode() == RunMode::kFull) device_.memory().Free(storage);
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
