// A candidate's device: memory, generators, kernels, and what runs one command on them. It checks
// no policy: a session does that before the first time, and a replay need not again.
#ifndef TRITONRL_EXEC_DEVICE_DEVICE_H_
#define TRITONRL_EXEC_DEVICE_DEVICE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "exec/device/arena.h"
#include "exec/device/generators.h"
#include "exec/device/kernel_table.h"
#include "exec/device/limits.h"
#include "exec/device/near_copies.h"
#include "exec/device/operator_call.h"
#include "exec/device/recording.h"
#include "exec/device/storage_table.h"
#include "exec/device/undo_log.h"
#include "exec/device/window.h"

namespace tritonrl::device {

enum class Phase : uint8_t { kInit, kForward };

// How commands run.
enum class RunMode : uint8_t {
  kFull,  // fresh memory is poisoned, tags are kept, reads are compared, launches are waited for
  // Commands do their work alone: fresh memory keeps what it held, no tags are kept, nothing is
  // read back, and launches are not waited for.
  kBare,
  // As kBare, and replayed operators' results stay in torch's memory (StorageTable::Adopt), which
  // is given up where the candidate freed them: the time is that of torch alone.
  kTimed,
};

// One result of an operator.
struct Placed {
  int argument = -1;    // the i-th tensor argument on the device, or -1
  bool is_new = false;  // `tensor` is new, or the argument's new place
  TensorRef tensor;     // of new tensors and arguments
  Value other;          // neither: a number or null
};
struct PlacedList {
  bool is_list = false;
  std::vector<Placed> items;
};

// Bytes that one call moved.
struct OperatorTraffic {
  int64_t calls = 0;
  int64_t bytes = 0;  // read and written
  double flops = 0;   // of operators that compute
};
struct Traffic {
  std::map<std::string, OperatorTraffic> operators;  // by name, without those that only allocate
  int64_t neutral_bytes = 0;                         // written by operators
  // Loaded and stored by the launches that are counted; of the others the storages that each may
  // touch, once each.
  int64_t kernel_bytes = 0;
  int64_t fills_over_kernel_bytes = 0;  // operators that overwrite what a kernel wrote
};

class Device {
 public:
  struct Options {
    SessionLimits limits;
    int threads = 1;                               // of a launch
    bool check = false;                            // launches are checked, and findings() grows
    std::function<void(absl::string_view)> print;  // gets what kernels print; may be null
  };
  Device(Arena* arena, KernelCompiler* compiler, const Options& options);

  StorageTable& memory() { return memory_; }
  Generators& generators() { return generators_; }
  KernelTable& kernels() { return kernels_; }
  const KernelTable& kernels() const { return kernels_; }
  Traffic& traffic() { return traffic_; }
  // Operators of the constructor that computed on random numbers, by name, with the elements of
  // their largest tensor. A name with a space is no operator's: "kernel k", "the host" (elements
  // that were read), "products of two".
  const std::map<std::string, int64_t>& of_weights() const { return of_weights_; }
  // A launch, or a read, of the constructor that happened: what becomes of random numbers. A result
  // that a kernel computed on them counts if it is there when the constructor ends.
  void NoteLaunchOfInit(const LaunchCommand& launch);
  void NoteReadOfInit(const TensorRef& tensor);
  void EndInit();
  const SessionLimits& limits() const { return options_.limits; }
  const LaunchFindings& findings() const { return findings_; }  // of all launches

  // Launches stop at this time.
  void set_deadline(absl::Time deadline) { deadline_ = deadline; }
  // While set, a launch that only copies elements of one argument to another (FindCopy) gives them
  // the tags that they had there, and their very values, unless they come from one of these
  // storages: it did no work that the operator before it could not have done. Null: all that
  // launches store is theirs.
  void set_originals(const std::set<int64_t>* originals, const CopyTolerance& tolerance = {}) {
    originals_ = originals;
    copy_tolerance_ = tolerance;
  }
  void set_mode(RunMode mode) { mode_ = mode; }
  RunMode mode() const { return mode_; }
  // Where inputs come from and outputs go; null: tensors on the host. It must outlive the device.
  void set_exchange(Exchange* exchange) { exchange_ = exchange; }
  Exchange* exchange() const { return exchange_; }
  Window* input_window() const { return exchange_ == nullptr ? nullptr : exchange_->inputs.get(); }
  Window* output_window() const {
    return exchange_ == nullptr ? nullptr : exchange_->outputs.get();
  }
  // While a log is set, it keeps what commands are about to overwrite.
  void set_undo_log(UndoLog* log) { undo_log_ = log; }

  // Makes a storage live and poisoned again.
  absl::Status Revive(int64_t storage);

  // Runs an operator whose tensors were checked. Its new tensors get new storages and are appended
  // to `made`; with `again` they are those of `made`, which become live. Errors as torch's, or
  // ResourceExhausted.
  absl::StatusOr<std::vector<PlacedList>> RunOperator(const BoundCall& bound, Phase phase,
                                                      bool again, std::vector<TensorRef>& made);

  // The storages that a checked launch may touch: those of its arguments, and those whose addresses
  // stand in integer arguments, or in tables of 64-bit integers among these storages.
  std::vector<Storage*> StoragesOf(const LaunchCommand& launch);

  // InvalidArgument "the candidate's process sent ...": kernel, grid or arguments cannot be.
  absl::Status CheckLaunch(const LaunchCommand& launch);
  // Runs a checked launch. Errors as those of LaunchableKernel::Launch.
  //
  // Tags: the bytes that the kernel stores become Tag::kKernel. `counts` may be null: nothing is
  // counted then.
  absl::Status RunLaunch(const LaunchCommand& launch, LaunchCounts* counts = nullptr);

 private:
  absl::StatusOr<Placed> Place(const BoundCall& bound, const Returned& returned, bool has_contents,
                               bool again, size_t& next, std::vector<TensorRef>& made);
  absl::StatusOr<TensorRef> PlaceNew(const at::Tensor& tensor, bool has_contents, bool again,
                                     size_t& next, std::vector<TensorRef>& made);
  absl::StatusOr<std::vector<ReturnedList>> RunOnDevice(const BoundCall& bound, bool writes_out);
  absl::Status TagResults(const BoundCall& bound, Phase phase,
                          const std::vector<PlacedList>& results);
  absl::Status TagJoin(const BoundCall& bound, const TensorRef& result);
  void TagCopy(const BoundCall& bound);
  void NoteOfWeights(const BoundCall& bound, int64_t random);
  std::vector<LaunchArgument> ArgumentsOf(const LaunchCommand& launch);
  bool MayCopyWork(const LaunchCommand& launch);
  absl::Status FollowCopies(const LaunchCommand& launch, const std::vector<Storage*>& storages,
                            const std::vector<at::Tensor>& before);
  absl::Status RunBare(const LaunchCommand& launch);
  void AddFindings(LaunchFindings& findings);
  LaunchSettings SettingsOf(const std::vector<Storage*>& storages);

  Options options_;
  StorageTable memory_;
  Generators generators_;
  KernelTable kernels_;
  Traffic traffic_;
  std::map<std::string, int64_t> of_weights_;
  std::map<int64_t, std::string> of_weights_by_kernels_;  // storage -> kernel
  int64_t small_of_weights_ = 0;                          // elements
  int64_t random_elements_read_ = 0;
  absl::Time deadline_ = absl::InfiniteFuture();
  RunMode mode_ = RunMode::kFull;
  Exchange* exchange_ = nullptr;
  UndoLog* undo_log_ = nullptr;
  const std::set<int64_t>* originals_ = nullptr;
  CopyTolerance copy_tolerance_;
  LaunchFindings findings_;
};

// The device's mode, until this object's end.
class ModeScope {
 public:
  ModeScope(Device& device, RunMode mode) : device_(device), before_(device.mode()) {
    device_.set_mode(mode);
  }
  ~ModeScope() { device_.set_mode(before_); }
  ModeScope(const ModeScope&) = delete;
  ModeScope& operator=(const ModeScope&) = delete;

 private:
  Device& device_;
  const RunMode before_;
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_DEVICE_H_
