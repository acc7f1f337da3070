#include "exec/device/cuda/replay_timer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>

#include <algorithm>
#include <set>

#include "absl/time/clock.h"
#include "base/status.h"
#include "exec/device/bytes.h"
#include "exec/device/hand_over.h"
#include "exec/device/replay.h"
#include "exec/device/torch_errors.h"

namespace tritonrl::device {
namespace {

constexpr int64_t kFlushBytes = int64_t{256} << 20;
constexpr int kWarmUps = 2;

}  // namespace

absl::StatusOr<std::unique_ptr<ReplayTimer>> ReplayTimer::Prepare(Session* session,
                                                                  CudaContext* context,
                                                                  const ReplayOptions& options,
                                                                  bool direct) {
  std::unique_ptr<ReplayTimer> timer(new ReplayTimer(session, context));
  RETURN_IF_ERROR(timer->Begin(options, direct));
  return timer;
}

ReplayTimer::~ReplayTimer() {
  if (graph_ != nullptr) CatchTorch([&] { graph_.reset(); }).IgnoreError();
  if (begin_ != nullptr) context_->driver().cuEventDestroy(begin_);
  if (end_ != nullptr) context_->driver().cuEventDestroy(end_);
}

absl::Status ReplayTimer::Begin(const ReplayOptions& options, bool direct) {
  const Driver& driver = context_->driver();
  deadline_ = options.deadline;
  seed_ = options.seed.value_or(session_->recording().call.seed);
  RETURN_IF_ERROR(driver.ToStatus(driver.cuEventCreate(&begin_, 0), "make an event"));
  RETURN_IF_ERROR(driver.ToStatus(driver.cuEventCreate(&end_, 0), "make an event"));
  ASSIGN_OR_RETURN(first_, session_->ReplayCall(options));
  // The replay changed what the call changes: the next one begins as the first did.
  Device& device = session_->device();
  RETURN_IF_ERROR(CatchTorch([&] {
    flush_ = at::empty({kFlushBytes},
                       at::TensorOptions().dtype(at::kByte).device(device.memory().device()));
  }));
  if (!options.keeps_state) RETURN_IF_ERROR(ReturnTo(*session_->checkpoint(), device));
  const RecordedCall& call = session_->recording().call;
  std::vector<WrittenInput> written(call.inputs.size());
  {
    const MappedWindow mapped(device.input_window());
    RETURN_IF_ERROR(mapped.status());
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      RETURN_IF_ERROR(device.memory().Revive(call.inputs[i].storage));
      ASSIGN_OR_RETURN(written[i], WriteInput(options.inputs[i], call.inputs[i], device));
    }
  }
  RETURN_IF_ERROR(FindChanges(written));
  for (int i = 0; i < kWarmUps; ++i) {
    RETURN_IF_ERROR(Restore());
    RETURN_IF_ERROR(RunBare());
  }
  RETURN_IF_ERROR(Wait());
  const absl::Status captured = direct ? absl::CancelledError("it was not asked for") : Capture();
  if (!captured.ok()) {
    not_a_graph_ = Message(captured);
    graph_.reset();
  }
  return absl::OkStatus();
}

absl::Status ReplayTimer::Wait() {
  return context_->Wait([this] { return absl::Now() > deadline_; });
}

absl::Status ReplayTimer::RunBare() {
  Device& device = session_->device();
  const ModeScope timed(device, RunMode::kTimed);
  absl::Status status;
  RETURN_IF_ERROR(CatchTorch([&] {
    status = RunCommands(session_->recording().call.commands, Phase::kForward, RunOptions(), device)
                 .status();
  }));
  return status;
}

// Runs the call, and keeps the older contents of all that it changed.
absl::Status ReplayTimer::FindChanges(const std::vector<WrittenInput>& inputs) {
  Device& device = session_->device();
  std::vector<int64_t> storages = session_->checkpoint()->storages;
  std::set<int64_t> older(storages.begin(), storages.end());
  for (const WrittenInput& input : inputs) {
    older.insert(input.place.storage);
    // What still lies in the window needs no copy.
    if (device.input_window() == nullptr) storages.push_back(input.place.storage);
  }
  device.generators().Seed(0, seed_);
  RETURN_IF_ERROR(CatchTorch([&] {
    std::vector<std::pair<int64_t, at::Tensor>> before;
    const auto bytes_of = [&](int64_t number) {
      const Storage* const storage = device.memory().Find(number);
      return storage == nullptr ? at::Tensor()
                                : BytesAt(device.memory().device(), storage->data, storage->bytes);
    };
    for (const int64_t number : storages) {
      const at::Tensor bytes = bytes_of(number);
      if (bytes.defined()) before.emplace_back(number, bytes.clone());
    }
    const absl::Status status = RunBare();
    TORCH_CHECK(status.ok(), status.message());
    for (auto& [number, contents] : before) {
      const at::Tensor now = bytes_of(number);
      if (now.defined() && !at::equal(now, contents)) restored_.emplace_back(number, contents);
    }
  }));
  if (device.input_window() != nullptr) RETURN_IF_ERROR(FindChangedInputs(inputs));
  device.memory().ForEachLive([&](const Storage& storage) {
    if (older.count(storage.number) == 0) allocated_.push_back(storage.number);
  });
  return absl::OkStatus();
}

absl::Status ReplayTimer::FindChangedInputs(const std::vector<WrittenInput>& inputs) {
  Device& device = session_->device();
  const MappedWindow mapped(device.input_window());
  RETURN_IF_ERROR(mapped.status());
  for (const WrittenInput& input : inputs) {
    const Storage* const storage = device.memory().Find(input.place.storage);
    if (storage == nullptr || HoldsInput(input, device)) continue;
    RETURN_IF_ERROR(WriteInput(input.source, input.place, device).status());
    RETURN_IF_ERROR(CatchTorch([&] {
      const at::Tensor bytes = BytesAt(device.memory().device(), storage->data, storage->bytes);
      restored_.emplace_back(input.place.storage, bytes.clone());
    }));
  }
  return absl::OkStatus();
}

absl::Status ReplayTimer::Restore() {
  Device& device = session_->device();
  return CatchTorch([&] {
    device.generators().Seed(0, seed_);
    for (const auto& [number, contents] : restored_) {
      const Storage* const storage = device.memory().Find(number);
      TORCH_CHECK(storage != nullptr, "a storage is missing");
      BytesAt(device.memory().device(), storage->data, storage->bytes).copy_(contents);
    }
    for (const int64_t number : allocated_) {
      const Storage* const storage = device.memory().Find(number);
      TORCH_CHECK(storage != nullptr, "a storage is missing");
      // torch writes all of what it makes itself.
      if (!storage->has_memory) continue;
      FillBytes(device.memory().device(), storage->data, static_cast<uint8_t>(Poison::kOnes),
                storage->bytes);
    }
  });
}

absl::Status ReplayTimer::QueueTimed() {
  const Driver& driver = context_->driver();
  RETURN_IF_ERROR(CatchTorch([&] { flush_.zero_(); }));
  const unsigned int flags = graph_ == nullptr ? 0 : CU_EVENT_RECORD_EXTERNAL;
  RETURN_IF_ERROR(driver.ToStatus(driver.cuEventRecordWithFlags(begin_, context_->stream(), flags),
                                  "record an event"));
  RETURN_IF_ERROR(RunBare());
  return driver.ToStatus(driver.cuEventRecordWithFlags(end_, context_->stream(), flags),
                         "record an event");
}

absl::Status ReplayTimer::Capture() {
  absl::Status queued;
  const absl::Status begun = CatchTorch([&] {
    graph_ = std::make_unique<at::cuda::CUDAGraph>();
    for (const at::Generator& generator : session_->device().generators().all()) {
      graph_->register_generator_state(generator);
    }
    graph_->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
  });
  if (!begun.ok()) return begun;
  queued = QueueTimed();
  const absl::Status ended = CatchTorch([&] { graph_->capture_end(); });
  RETURN_IF_ERROR(queued);
  return ended;
}

absl::StatusOr<double> ReplayTimer::Elapsed() const {
  float ms = 0;
  const Driver& driver = context_->driver();
  RETURN_IF_ERROR(driver.ToStatus(driver.cuEventElapsedTime(&ms, begin_, end_), "read an event"));
  return static_cast<double>(ms);
}

absl::StatusOr<std::vector<double>> ReplayTimer::Time(int count) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    RETURN_IF_ERROR(Restore());
    if (graph_ != nullptr) {
      RETURN_IF_ERROR(CatchTorch([&] { graph_->replay(); }));
    } else {
      RETURN_IF_ERROR(QueueTimed());
    }
    RETURN_IF_ERROR(Wait());
    ASSIGN_OR_RETURN(times.emplace_back(), Elapsed());
  }
  return times;
}

absl::StatusOr<Value> ReplayTimer::Output() {
  return HandOver(session_->recording().call.output, session_->device(), nullptr);
}

absl::StatusOr<double> ReplayTimer::MeanWithLaunches(int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) {
    RETURN_IF_ERROR(Restore());
    RETURN_IF_ERROR(Wait());
    RETURN_IF_ERROR(CatchTorch([&] {
      sum += MillisecondsOf(session_->device().memory().device(), [&] { return RunBare(); });
    }));
  }
  return sum / std::max(count, 1);
}

}  // namespace tritonrl::device
