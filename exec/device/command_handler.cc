#include "exec/device/command_handler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "exec/device/hand_over.h"
#include "exec/device/init_operators.h"
#include "exec/device/value_parser.h"
#include "exec/device/value_writer.h"

namespace tritonrl::device {
namespace {

constexpr size_t kMaxName = 200;
constexpr size_t kMaxIncidents = 100;

void AddIncident(Incident incident, std::vector<Incident>& incidents) {
  if (incidents.size() < kMaxIncidents) incidents.push_back(std::move(incident));
}

absl::StatusOr<OperatorCall> ParseOperator(const Json& message, absl::string_view payload) {
  OperatorCall call;
  ASSIGN_OR_RETURN(call.name, TextField(message, "name", kMaxName));
  ASSIGN_OR_RETURN(call.overload, TextField(message, "overload", kMaxName));
  if (call.overload == "default") call.overload.clear();
  ASSIGN_OR_RETURN(const Json* args, FieldOf(message, "args"));
  ASSIGN_OR_RETURN(call.args, ParseValue(*args, payload));
  if (call.args.kind == Value::Kind::kTuple) call.args.kind = Value::Kind::kList;
  if (call.args.kind != Value::Kind::kList) return Hostile("arguments that are not a list");
  call.kwargs.kind = Value::Kind::kDict;
  if (message.contains("kwargs") && !message["kwargs"].is_null()) {
    ASSIGN_OR_RETURN(call.kwargs, ParseValue(message["kwargs"], payload));
  }
  if (call.kwargs.kind != Value::Kind::kDict) return Hostile("keywords that are not a dict");
  for (const Value& key : call.kwargs.keys) {
    if (key.kind != Value::Kind::kText) return Hostile("a keyword that is not a text");
  }
  call.line = LineOf(message);
  return call;
}

absl::StatusOr<LaunchCommand> ParseLaunch(const Json& message, absl::string_view payload) {
  LaunchCommand launch;
  ASSIGN_OR_RETURN(launch.kernel, IntegerField(message, "kernel", 0, INT32_MAX));
  ASSIGN_OR_RETURN(const Json* grid, ListField(message, "grid", 3));
  for (size_t i = 0; i < grid->size(); ++i) {
    ASSIGN_OR_RETURN(const int64_t size, IntegerOf((*grid)[i], "grid", INT32_MIN, INT32_MAX));
    launch.grid[i] = static_cast<int32_t>(size);
  }
  ASSIGN_OR_RETURN(const Json* args, FieldOf(message, "args"));
  ASSIGN_OR_RETURN(Value arguments, ParseValue(*args, payload));
  if (arguments.kind != Value::Kind::kList) return Hostile("arguments that are not a list");
  launch.arguments = std::move(arguments.items);
  launch.line = LineOf(message);
  return launch;
}

}  // namespace

void CommandHandler::BeginInit(CommandList* list) {
  phase_ = Phase::kInit;
  list_ = list;
}

void CommandHandler::BeginCall(CommandList* list) {
  phase_ = Phase::kForward;
  list_ = list;
  budget_ = CallBudget();
  commands_of_call_ = 0;
}

absl::Status CommandHandler::CountCommands(int64_t count) {
  const SessionLimits& limits = device_.limits();
  const auto exceeded = [](int64_t limit, absl::string_view where) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the candidate sent more than ", limit, " commands in ", where));
  };
  if (range_.has_value()) {
    counts_.bench_commands += count;
    if (counts_.bench_commands <= limits.max_bench_commands) return absl::OkStatus();
    return exceeded(limits.max_bench_commands, "benchmarks and graphs");
  }
  if (phase_ == Phase::kInit) {
    counts_.init_commands += count;
    if (counts_.init_commands <= limits.max_init_commands) return absl::OkStatus();
    return exceeded(limits.max_init_commands, "its constructor");
  }
  counts_.forward_commands += count;
  commands_of_call_ += count;
  if (commands_of_call_ <= limits.max_forward_commands) return absl::OkStatus();
  return exceeded(limits.max_forward_commands, "one call of forward");
}

// What a recording keeps of a message.
absl::Status CommandHandler::CountValues(const Value& value) {
  if (++recorded_values_ > device_.limits().max_recorded_values) {
    return absl::ResourceExhaustedError("the candidate sent commands with too many values");
  }
  if (value.kind == Value::Kind::kHost && phase_ == Phase::kInit) {
    init_upload_bytes_ += static_cast<int64_t>(value.host.nbytes());
    if (init_upload_bytes_ > device_.limits().max_init_upload_bytes) {
      return absl::ResourceExhaustedError("the constructor sends too many bytes from the host");
    }
  }
  for (const Value& item : value.items) RETURN_IF_ERROR(CountValues(item));
  return absl::OkStatus();
}

absl::StatusOr<Reply> CommandHandler::Handle(absl::string_view what, const Json& message,
                                             absl::string_view payload) {
  RETURN_IF_ERROR(CountCommands(1));
  const bool touches_memory =
      what == "op" || what == "read" || what == "launch" || what == "replay";
  if (touches_memory && !broken_.empty()) return ErrorReply(absl::AbortedError(broken_));
  if (what == "op") return Operator(message, payload);
  if (what == "read") return Read(message);
  if (what == "seed") return Seed(message);
  if (what == "generator") return MakeGenerator();
  if (what == "kernel") return MakeKernel(message);
  if (what == "launch") return Launch(message, payload);
  if (what == "bench") return Bench(message);
  if (what == "graph") return Graph(message);
  if (what == "replay") return ReplayGraph(message);
  return Hostile("an unknown request");
}

absl::Status CommandHandler::Free(const Json& message) {
  if (!message.contains("free")) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Json* list, ListField(message, "free", kMaxListItems));
  FreeCommand command;
  for (const Json& item : *list) {
    ASSIGN_OR_RETURN(const int64_t number, IntegerOf(item, "free", 0, INT64_MAX));
    const Storage* const storage = device_.memory().FindAny(number);
    if (storage == nullptr) return Hostile("the number of a storage that does not exist");
    if (!storage->live || storage->pinned) continue;
    device_.memory().Free(number);
    command.storages.push_back(number);
  }
  if (!command.storages.empty()) list_->push_back(std::make_shared<Command>(std::move(command)));
  return absl::OkStatus();
}

// In benchmarks and graphs only memory is recorded: it stays after them.
void CommandHandler::Record(Command command) {
  auto shared = std::make_shared<const Command>(std::move(command));
  if (!range_.has_value()) {
    list_->push_back(std::move(shared));
  } else if (range_->is_graph) {
    range_->commands.push_back(std::move(shared));
  }
}

void CommandHandler::RecordOperator(OperatorCall call, const std::vector<TensorRef>& made) {
  if (range_.has_value()) {
    for (const TensorRef& tensor : made) {
      range_->made.push_back(tensor.storage);
      list_->push_back(std::make_shared<Command>(AllocateCommand{tensor.storage}));
    }
  }
  Record(OperatorCommand{std::move(call), made});
}

// A graph's memory stays as long as the graph.
void CommandHandler::Pin(int64_t storage) {
  if (!range_.has_value() || !range_->is_graph) return;
  if (Storage* const found = device_.memory().Find(storage)) found->pinned = true;
}

absl::Status CommandHandler::CheckReferences(const Value& value) {
  if (value.kind == Value::Kind::kTensor) return device_.memory().Check(value.tensor);
  if (value.kind == Value::Kind::kGenerator) return device_.generators().Check(value.integer);
  for (const Value& item : value.items) RETURN_IF_ERROR(CheckReferences(item));
  return absl::OkStatus();
}

absl::Status CommandHandler::CheckPolicy(const BoundCall& bound) {
  if (phase_ == Phase::kForward) {
    return CheckForward(bound, device_.memory(), rules_, budget_);
  }
  return CheckInit(bound, device_.memory(),
                   device_.limits().max_memory_bytes - device_.memory().live_bytes());
}

// A reply, unless the session has to end.
absl::StatusOr<Reply> CommandHandler::Refuse(const absl::Status& status, int line) {
  if (absl::IsDeadlineExceeded(status) || absl::IsInternal(status)) return status;
  if (absl::IsPermissionDenied(status)) {
    AddIncident({phase_, Message(status), line, status.code()}, counts_.refusals);
  }
  return ErrorReply(status);
}

absl::StatusOr<Reply> CommandHandler::Operator(const Json& message, absl::string_view payload) {
  ASSIGN_OR_RETURN(OperatorCall call, ParseOperator(message, payload));
  RETURN_IF_ERROR(CountValues(call.args));
  RETURN_IF_ERROR(CountValues(call.kwargs));
  RETURN_IF_ERROR(CheckReferences(call.args));
  RETURN_IF_ERROR(CheckReferences(call.kwargs));
  const auto bound = Bind(call);
  if (!bound.ok()) return Refuse(bound.status(), call.line);
  ++(phase_ == Phase::kInit ? counts_.init_operators : counts_.forward_operators)[call.name];
  if (const absl::Status status = CheckPolicy(*bound); !status.ok()) {
    return Refuse(status, call.line);
  }
  std::vector<TensorRef> made;
  const absl::Time began = absl::Now();
  const auto results = device_.RunOperator(*bound, phase_, /*again=*/false, made);
  const absl::Duration taken = absl::Now() - began;
  if (results.ok() && TreatmentOf(*bound->call) != Treatment::kAllocate) {
    AddTime(taken,
            [&] { return device_.RunOperator(*bound, phase_, /*again=*/true, made).status(); });
  }
  if (!results.ok()) {
    for (const TensorRef& tensor : made) device_.memory().Free(tensor.storage);
    return Refuse(results.status(), call.line);
  }
  for (const TensorRef* tensor : bound->tensors) Pin(tensor->storage);
  for (const TensorRef& tensor : made) Pin(tensor.storage);
  Reply reply;
  ASSIGN_OR_RETURN(reply.header["out"], DescribeResults(*results, device_.memory(), reply.payload));
  RecordOperator(std::move(call), made);
  return reply;
}

absl::Status CommandHandler::CheckReadBudget(const TensorRef& tensor) {
  const SessionLimits& limits = device_.limits();
  const int64_t elements = tensor.elements();
  if (phase_ == Phase::kInit) {
    init_read_bytes_ += elements * BytesOf(tensor.dtype);
    if (init_read_bytes_ <= limits.max_init_read_bytes) return absl::OkStatus();
    return absl::PermissionDeniedError(
        absl::StrCat("the constructor reads ", init_read_bytes_, " bytes back"));
  }
  if (rules_.may_compute) return absl::OkStatus();
  budget_.read_elements += elements;
  if (elements <= limits.max_read_elements &&
      budget_.read_elements <= limits.max_read_elements_of_call) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat("forward reads ", std::max(elements, budget_.read_elements), " elements back"));
}

absl::StatusOr<Reply> CommandHandler::Read(const Json& message) {
  ASSIGN_OR_RETURN(const Json* tensor_json, FieldOf(message, "tensor"));
  const Json& inner =
      tensor_json->is_object() && tensor_json->contains("t") ? (*tensor_json)["t"] : *tensor_json;
  ASSIGN_OR_RETURN(const TensorRef tensor, ParseTensorRef(inner));
  RETURN_IF_ERROR(device_.memory().Check(tensor));
  if (range_.has_value() && range_->is_graph) {
    return ErrorReply(absl::FailedPreconditionError(
        "CUDA error: operation not permitted when stream is capturing"));
  }
  if (const absl::Status status = CheckReadBudget(tensor); !status.ok()) {
    return Refuse(status, LineOf(message));
  }
  ++counts_.reads;
  if (phase_ == Phase::kInit) device_.NoteReadOfInit(tensor);
  const auto value = CopyOut(Value::Tensor(tensor), device_, nullptr);
  if (!value.ok()) return Refuse(value.status(), LineOf(message));
  Reply reply;
  ASSIGN_OR_RETURN(reply.header, ValueToJson(*value, reply.payload));
  Record(ReadCommand{tensor, value->host});
  return reply;
}

absl::StatusOr<Reply> CommandHandler::Seed(const Json& message) {
  SeedCommand command;
  ASSIGN_OR_RETURN(command.seed, SeedField(message, "seed"));
  if (message.contains("generator") && !message["generator"].is_null()) {
    ASSIGN_OR_RETURN(command.generator, IntegerField(message, "generator", 0, INT32_MAX));
  }
  RETURN_IF_ERROR(device_.generators().Check(command.generator));
  if (range_.has_value() && range_->is_graph) {
    return ErrorReply(absl::FailedPreconditionError("a graph cannot seed a generator"));
  }
  device_.generators().Seed(command.generator, command.seed);
  Record(command);
  return Reply();
}

absl::StatusOr<Reply> CommandHandler::MakeGenerator() {
  const auto number = device_.generators().Create();
  if (!number.ok()) return ErrorReply(number.status());
  Reply reply;
  reply.header["generator"] = *number;
  return reply;
}

absl::StatusOr<Reply> CommandHandler::MakeKernel(const Json& message) {
  KernelEntry entry;
  ASSIGN_OR_RETURN(entry.name, TextField(message, "name", kMaxName));
  ASSIGN_OR_RETURN(const Json* ttir, FieldOf(message, "ttir"));
  if (!ttir->is_string()) return Hostile("Triton IR that is not a text");
  KernelOptions& options = entry.options;
  ASSIGN_OR_RETURN(options.num_warps, IntegerField(message, "num_warps", 1, 64));
  ASSIGN_OR_RETURN(options.num_stages, IntegerField(message, "num_stages", 0, 64));
  ASSIGN_OR_RETURN(options.num_ctas, IntegerField(message, "num_ctas", 1, 64));
  if (message.contains("maxnreg")) {
    ASSIGN_OR_RETURN(options.maxnreg, IntegerField(message, "maxnreg", 0, INT32_MAX));
  }
  if (message.contains("fp_fusion")) {
    ASSIGN_OR_RETURN(options.fp_fusion, BoolField(message, "fp_fusion"));
  }
  if (message.contains("cooperative")) {
    ASSIGN_OR_RETURN(options.cooperative, BoolField(message, "cooperative"));
  }
  if (message.contains("pdl")) {
    ASSIGN_OR_RETURN(options.pdl, BoolField(message, "pdl"));
  }
  ASSIGN_OR_RETURN(entry.shared_bytes, IntegerField(message, "shared", 0, INT32_MAX));
  const auto number = device_.kernels().Add(std::move(entry), ttir->get_ref<const std::string&>());
  if (!number.ok()) {
    AddIncident({phase_, Message(number.status()), LineOf(message), number.status().code()},
                counts_.kernel_errors);
    return Refuse(number.status(), LineOf(message));
  }
  Reply reply;
  reply.header["kernel"] = *number;
  return reply;
}

absl::StatusOr<Reply> CommandHandler::AfterLaunch(const absl::Status& status, int line) {
  if (status.ok()) return Reply();
  if (!absl::IsDeadlineExceeded(status)) {
    AddIncident({phase_, Message(status), line, status.code()}, counts_.kernel_errors);
  }
  const bool harmless = absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status);
  if (!harmless) broken_ = Message(status);
  return Refuse(status, line);
}

absl::StatusOr<Reply> CommandHandler::Launch(const Json& message, absl::string_view payload) {
  ASSIGN_OR_RETURN(LaunchCommand launch, ParseLaunch(message, payload));
  for (const Value& argument : launch.arguments) RETURN_IF_ERROR(CountValues(argument));
  RETURN_IF_ERROR(device_.CheckLaunch(launch));
  if (launch.grid[1] > UINT16_MAX || launch.grid[2] > UINT16_MAX) {
    return ErrorReply(absl::InvalidArgumentError("Triton Error [CUDA]: invalid argument"));
  }
  if (range_.has_value() && range_->is_graph) {
    for (const Storage* storage : device_.StoragesOf(launch)) Pin(storage->number);
  }
  const int line = launch.line;
  const absl::Time began = absl::Now();
  const absl::Status status = device_.RunLaunch(launch);
  if (status.ok()) AddTime(absl::Now() - began, [&] { return device_.RunLaunch(launch); });
  if (!range_.has_value()) ++counts_.launches;
  if (status.ok() && phase_ == Phase::kInit && !range_.has_value()) {
    device_.NoteLaunchOfInit(launch);
  }
  if (status.ok()) Record(std::move(launch));
  return AfterLaunch(status, line);
}

}  // namespace tritonrl::device
