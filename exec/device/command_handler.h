// Answers the commands of a candidate's process: checks, runs and records each.
#ifndef TRITONRL_EXEC_DEVICE_COMMAND_HANDLER_H_
#define TRITONRL_EXEC_DEVICE_COMMAND_HANDLER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "exec/device/device.h"
#include "exec/device/neutral_operators.h"
#include "exec/device/recording.h"
#include "exec/device/reply.h"
#include "exec/device/undo_log.h"

namespace tritonrl::device {

// Something that the executor refused, or a kernel did wrong.
struct Incident {
  Phase phase = Phase::kInit;
  std::string text;
  int line = 0;  // of the candidate's source
  absl::StatusCode code = absl::StatusCode::kUnknown;
};

struct CommandCounts {
  std::map<std::string, int64_t> init_operators;  // by name
  std::map<std::string, int64_t> forward_operators;
  int64_t init_commands = 0;
  int64_t forward_commands = 0;  // of all calls
  int64_t bench_commands = 0;
  int64_t launches = 0;  // outside of benchmarks
  int64_t benches = 0;
  int64_t reads = 0;
  std::vector<Incident> refusals;
  std::vector<Incident> kernel_errors;
};

// Commands between begin and end of a benchmark or a graph: what they change is undone.
struct UndoneRange {
  bool is_graph = false;
  UndoLog log;
  std::vector<at::Generator> generators;
  std::vector<int64_t> made;  // storages
  CommandList commands;       // of a graph
  absl::Duration spent;
};

class CommandHandler {
 public:
  CommandHandler(Device* device, const ForwardRules& rules) : device_(*device), rules_(rules) {}

  // Commands go into `list` from now on, which outlives the handler or the next call of this.
  void BeginInit(CommandList* list);
  void BeginCall(CommandList* list);

  // The reply to the command `what` ("op", "launch", ...). Errors end the session: InvalidArgument
  // "the candidate's process sent ...", ResourceExhausted (too many commands), DeadlineExceeded.
  absl::StatusOr<Reply> Handle(absl::string_view what, const Json& message,
                               absl::string_view payload);
  // Frees the storages that a message names.
  absl::Status Free(const Json& message);

  // Whether a benchmark or a graph began and did not end.
  bool in_range() const { return range_.has_value(); }
  const CommandCounts& counts() const { return counts_; }
  const CallBudget& budget() const { return budget_; }

 private:
  absl::StatusOr<Reply> Operator(const Json& message, absl::string_view payload);
  absl::StatusOr<Reply> Read(const Json& message);
  absl::StatusOr<Reply> Seed(const Json& message);
  absl::StatusOr<Reply> MakeGenerator();
  absl::StatusOr<Reply> MakeKernel(const Json& message);
  absl::StatusOr<Reply> Launch(const Json& message, absl::string_view payload);
  absl::StatusOr<Reply> Bench(const Json& message);
  absl::StatusOr<Reply> Graph(const Json& message);
  absl::StatusOr<Reply> ReplayGraph(const Json& message);

  absl::Status CountCommands(int64_t count);
  absl::Status CountValues(const Value& value);
  absl::Status CheckReferences(const Value& value);
  absl::Status CheckPolicy(const BoundCall& bound);
  absl::StatusOr<Reply> Refuse(const absl::Status& status, int line);
  absl::StatusOr<Reply> AfterLaunch(const absl::Status& status, int line);
  absl::Status CheckReadBudget(const TensorRef& tensor);
  void Record(Command command);
  void RecordOperator(OperatorCall call, const std::vector<TensorRef>& made);
  void Pin(int64_t storage);
  void AddTime(absl::Duration on_cpu, const std::function<absl::Status()>& run_again);
  void BeginRange(bool is_graph);
  absl::Status EndRange();

  Device& device_;
  ForwardRules rules_;
  Phase phase_ = Phase::kInit;
  CommandList* list_ = nullptr;
  CommandCounts counts_;
  CallBudget budget_;
  int64_t commands_of_call_ = 0;
  int64_t init_read_bytes_ = 0;
  int64_t init_upload_bytes_ = 0;
  int64_t recorded_values_ = 0;
  std::optional<UndoneRange> range_;
  std::vector<CommandList> graphs_;
  std::string broken_;  // the error of a kernel after which, as on a GPU, nothing works
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_COMMAND_HANDLER_H_
