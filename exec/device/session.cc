#include "exec/device/session.h"

#include <ATen/ops/equal.h>

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "exec/device/bytes.h"
#include "exec/device/hand_over.h"
#include "exec/device/torch_errors.h"
#include "exec/device/value_parser.h"
#include "exec/device/value_writer.h"

namespace tritonrl::device {
namespace {

constexpr size_t kMaxStateName = 1'000;
constexpr size_t kMaxNamedStateBytes = 100;
constexpr size_t kMaxNamedState = 4;

// The first bytes of a text; the protocol's limit is in characters.
std::string Shortened(std::string text) {
  if (text.size() > 4 * kMaxErrorText) text.resize(4 * kMaxErrorText);
  return text;
}

Json DescribeDevice(const DeviceDescription& device, bool compiles) {
  return {{"name", device.name},
          {"capability", {device.capability_major, device.capability_minor}},
          {"multiprocessors", device.multiprocessors},
          {"shared_bytes", device.shared_bytes},
          {"compiles", compiles},
          {"total_bytes", device.total_bytes}};
}

std::string ShapeText(at::IntArrayRef shape) {
  return absl::StrCat("(", absl::StrJoin(shape, ", "), shape.size() == 1 ? ",)" : ")");
}

// The sentence on a tensor of the state that keeps its own value.
std::string OwnState(const std::string& name, const TensorRef& own, const at::Tensor* counterpart) {
  const std::string what = absl::StrCat("parameter or buffer '",
                                        name.substr(0, kMaxNamedStateBytes), "' of ModelNew has ");
  constexpr char kKeeps[] = ", it keeps its own initial value";
  if (counterpart == nullptr) return absl::StrCat(what, "no counterpart in Model", kKeeps);
  if (counterpart->sizes() == own.shape) {
    return absl::StrCat(what, "the type ", NameOf(own.dtype), ", its counterpart in Model ",
                        NameOf(counterpart->scalar_type()), kKeeps);
  }
  return absl::StrCat(what, "the shape ", ShapeText(own.shape), ", its counterpart in Model ",
                      ShapeText(counterpart->sizes()), kKeeps);
}

SessionOptions WithLimitsOfDevice(SessionOptions options) {
  options.limits.max_shared_bytes = options.device.shared_bytes;
  return options;
}

Arena* Emptied(Arena* arena, const SessionOptions& options) {
  arena->Reset();
  arena->set_ignores_tags(options.may_compute);  // nobody asks who did
  return arena;
}

}  // namespace

Session::Session(SessionOptions options, Arena* arena, KernelCompiler* compiler)
    : options_(WithLimitsOfDevice(std::move(options))),
      compiles_(compiler->uses_options()),
      device_(Emptied(arena, options_), compiler,
              {options_.limits, options_.threads, options_.check, options_.print}),
      handler_(&device_, {options_.limits, options_.also_allowed, options_.may_compute}) {
  device_.set_deadline(options_.deadline);
  device_.set_exchange(options_.exchange.get());
}

absl::StatusOr<SessionResult> Session::Run(Channel& channel) {
  if (options_.calls.empty()) return absl::InternalError("a session without inputs");
  while (stage_ != Stage::kEnded) {
    ASSIGN_OR_RETURN(const Frame frame, channel.Receive(options_.deadline));
    ASSIGN_OR_RETURN(const Json message, ParseJson(frame.header));
    const Stage before = stage_;
    absl::StatusOr<Reply> reply = absl::InternalError("");
    RETURN_IF_ERROR(CatchTorch([&] { reply = Answer(message, frame.payload); }));
    RETURN_IF_ERROR(reply.status());
    if (stage_ != Stage::kEnded) RETURN_IF_ERROR(handler_.Free(message));
    // The constructor's last message says what it let go.
    if (before == Stage::kInit && stage_ == Stage::kForward) device_.EndInit();
    const absl::Status sent =
        channel.Send({WriteJson(reply->header), reply->payload}, options_.deadline);
    // A process that is done need not listen.
    if (stage_ != Stage::kEnded) RETURN_IF_ERROR(sent);
  }
  result_.counts = handler_.counts();
  result_.lacking_bytes = device_.memory().lacking_bytes();
  result_.of_weights = device_.of_weights();
  result_.findings = device_.findings();
  return result_;
}

absl::StatusOr<Reply> Session::Answer(const Json& message, absl::string_view payload) {
  ASSIGN_OR_RETURN(const std::string what, TextField(message, "do", 32));
  if (what == "failed") {
    RETURN_IF_ERROR(Failed(message));
    return Reply();
  }
  if (stage_ == Stage::kNew) {
    if (what != "begin") return Hostile("a request before it began");
    return Begin();
  }
  if (what == "constructed" && stage_ == Stage::kInit) return Constructed(message);
  if (what == "output" && stage_ == Stage::kForward) return Output(message, payload);
  return handler_.Handle(what, message, payload);
}

absl::StatusOr<Reply> Session::Begin() {
  stage_ = Stage::kInit;
  recording_.init_seed = options_.init_seed;
  device_.generators().Seed(0, options_.init_seed);
  handler_.BeginInit(&recording_.init);
  Reply reply;
  reply.header = {{"source", options_.source},
                  {"entry", options_.entry},
                  {"seed", options_.told_seed.value_or(options_.init_seed)},
                  {"program", options_.is_program},
                  {"device", DescribeDevice(options_.device, compiles_)}};
  ASSIGN_OR_RETURN(reply.header["args"], ValueToJson(options_.init_args, reply.payload));
  ASSIGN_OR_RETURN(reply.header["kwargs"], ValueToJson(options_.init_kwargs, reply.payload));
  return reply;
}

absl::Status Session::Failed(const Json& message) {
  Failure failure;
  ASSIGN_OR_RETURN(failure.phase, TextField(message, "phase", 16));
  ASSIGN_OR_RETURN(failure.kind, TextField(message, "kind", 1'000));
  ASSIGN_OR_RETURN(failure.text, TextField(message, "text", kMaxHeaderBytes));
  failure.text = Shortened(std::move(failure.text));
  failure.line = LineOf(message);
  // Where it failed is ours to say, unless only the process can know it.
  const bool import = failure.phase == "import" && stage_ <= Stage::kInit;
  const bool output = failure.phase == "output" && stage_ == Stage::kForward;
  if (!import && !output) failure.phase = stage_ == Stage::kForward ? "forward" : "init";
  result_.failure = std::move(failure);
  stage_ = Stage::kEnded;
  return absl::OkStatus();
}

absl::StatusOr<Reply> Session::Constructed(const Json& message) {
  if (handler_.in_range()) return Hostile("the end of init in a benchmark or a graph");
  ASSIGN_OR_RETURN(const Json* state, ListField(message, "state", kMaxListItems));
  for (const Json& entry : *state) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() ||
        entry[0].get_ref<const std::string&>().size() > kMaxStateName) {
      return Hostile("a state that is not a list of names and tensors");
    }
    ASSIGN_OR_RETURN(const Value value, ParseValue(entry[1], ""));
    if (value.kind != Value::Kind::kTensor) return Hostile("a state that is not on the device");
    RETURN_IF_ERROR(device_.memory().Check(value.tensor));
    recording_.state.emplace_back(entry[0].get<std::string>(), value.tensor);
  }
  result_.state_tensors = static_cast<int64_t>(recording_.state.size());
  if (options_.true_seed.has_value()) {
    ASSIGN_OR_RETURN(const RunResult again, RunInit(recording_, *options_.true_seed, device_));
    result_.init_reads_that_differ = again.reads_that_differ;
  }
  RETURN_IF_ERROR(PutState());
  TagWeights();
  checkpoint_ = TakeCheckpoint(device_);
  stage_ = Stage::kForward;
  return BeginNextCall();
}

absl::Status Session::PutState() {
  if (options_.state.empty() && !options_.state_is_known) return absl::OkStatus();
  struct Other {
    const std::string& name;
    const TensorRef& tensor;
    const at::Tensor* counterpart;
  };
  std::vector<Other> others;
  std::map<std::string, double> renamed = options_.varied;
  for (const auto& own_entry : recording_.state) {
    const std::string& name = own_entry.first;
    const TensorRef& tensor = own_entry.second;
    const auto wanted = std::find_if(options_.state.begin(), options_.state.end(),
                                     [&](const auto& entry) { return entry.first == name; });
    if (wanted == options_.state.end() || wanted->second.sizes() != tensor.shape ||
        wanted->second.scalar_type() != tensor.dtype || !HasDistinctElements(tensor)) {
      others.push_back({name, tensor, wanted == options_.state.end() ? nullptr : &wanted->second});
      continue;
    }
    renamed.erase(name);
    ++result_.state_matched;
    RETURN_IF_ERROR(CatchTorch([&] { device_.memory().View(tensor).copy_(wanted->second); }));
  }
  for (const Other& other : others) {
    ASSIGN_OR_RETURN(const bool given, PutRenamed(other.tensor, renamed));
    if (!given && result_.own_state.size() < kMaxNamedState) {
      result_.own_state.push_back(OwnState(other.name, other.tensor, other.counterpart));
    }
  }
  return absl::OkStatus();
}

// Gives the tensor the first of the renamed ones that was the constant which it holds; false if
// there is none.
absl::StatusOr<bool> Session::PutRenamed(const TensorRef& tensor,
                                         std::map<std::string, double>& renamed) {
  if (renamed.empty() || tensor.elements() == 0 || !HasDistinctElements(tensor)) return false;
  bool given = false;
  RETURN_IF_ERROR(CatchTorch([&] {
    at::Tensor own = device_.memory().View(tensor);
    for (const auto& [name, value] : options_.state) {
      const auto was = renamed.find(name);
      if (was == renamed.end() || value.numel() != own.numel() ||
          value.scalar_type() != own.scalar_type() || !own.eq(was->second).all().item<bool>()) {
        continue;
      }
      own.copy_(value.reshape(own.sizes()).to(own.device()));
      renamed.erase(was);
      given = true;
      return;
    }
  }));
  return given;
}

// Whatever the constructor wrote is a weight from now on.
void Session::TagWeights() {
  device_.memory().ForEachLive([this](Storage& storage) {
    ReplaceOthers(device_.memory().device(), storage.shadow.get(),
                  static_cast<uint8_t>(Tag::kUnwritten), static_cast<uint8_t>(Tag::kWeight),
                  storage.bytes);
  });
}

absl::StatusOr<Reply> Session::BeginNextCall() {
  const size_t number = result_.outputs.size();
  const bool first = number == 0;
  const CallInputs& inputs = options_.calls[number];
  device_.memory().set_poison(number % 2 == 0 ? Poison::kOnes : Poison::kPattern);
  if (!first && !options_.keeps_state) RETURN_IF_ERROR(ReturnTo(*checkpoint_, device_));
  device_.generators().Seed(0, inputs.seed);
  device_.traffic() = Traffic();
  later_commands_.clear();
  handler_.BeginCall(first ? &recording_.call.commands : &later_commands_);
  placed_.clear();
  if (options_.exchange != nullptr) RETURN_IF_ERROR(options_.exchange->provide(number));
  const MappedWindow mapped(device_.input_window());
  RETURN_IF_ERROR(mapped.status());
  ASSIGN_OR_RETURN(const Value args, PlaceInputs(inputs.args, device_, placed_));
  ASSIGN_OR_RETURN(const Value kwargs, PlaceInputs(inputs.kwargs, device_, placed_));
  if (first) {
    for (const WrittenInput& input : placed_) recording_.call.inputs.push_back(input.place);
    recording_.call.seed = inputs.seed;
  }
  const auto describe = [this](const TensorRef& tensor) {
    return DescribeTensor(tensor, device_.memory());
  };
  Reply reply;
  reply.header["seed"] = inputs.seed;
  ASSIGN_OR_RETURN(reply.header["args"], ValueToJson(args, reply.payload, describe));
  ASSIGN_OR_RETURN(reply.header["kwargs"], ValueToJson(kwargs, reply.payload, describe));
  return reply;
}

bool Session::InputsUnchanged() {
  // An input that was freed can no longer be compared, and no longer be changed.
  const MappedWindow mapped(device_.input_window());
  return std::all_of(placed_.begin(), placed_.end(), [this](const WrittenInput& input) {
    return device_.memory().Find(input.place.storage) == nullptr || HoldsInput(input, device_);
  });
}

absl::StatusOr<Reply> Session::Output(const Json& message, absl::string_view payload) {
  if (handler_.in_range()) return Hostile("an output in a benchmark or a graph");
  ASSIGN_OR_RETURN(const Json* json, FieldOf(message, "value"));
  ASSIGN_OR_RETURN(Value value, ParseValue(*json, payload));
  const bool first = result_.outputs.empty();
  int64_t bytes = 0;
  RETURN_IF_ERROR(ForEachTensor(value, [&](const Value& leaf) -> absl::Status {
    if (leaf.kind == Value::Kind::kHost) {
      if (first) result_.host_output_bytes += static_cast<int64_t>(leaf.host.nbytes());
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(device_.memory().Check(leaf.tensor));
    bytes += leaf.tensor.elements() * BytesOf(leaf.tensor.dtype);
    const int64_t most =
        std::min(options_.limits.max_output_bytes, options_.limits.max_memory_bytes);
    if (bytes <= most) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("forward's result has more than ", most, " bytes"));
  }));
  result_.inputs_unchanged.push_back(InputsUnchanged());
  if (first) result_.traffic = device_.traffic();
  ASSIGN_OR_RETURN(Value output, HandOver(value, device_, first ? &result_.provenance : nullptr));
  if (options_.exchange != nullptr) {
    RETURN_IF_ERROR(
        options_.exchange->take(result_.outputs.size(), output, result_.host_output_bytes == 0));
  }
  if (first) recording_.call.output = std::move(value);
  result_.outputs.push_back(std::move(output));
  if (result_.outputs.size() < options_.calls.size()) return BeginNextCall();
  stage_ = Stage::kEnded;
  Reply reply;
  reply.header["end"] = true;
  return reply;
}

absl::StatusOr<ReplayResult> Session::ReplayCall(const ReplayOptions& options) {
  if (result_.outputs.empty()) return absl::FailedPreconditionError("there is no call to replay");
  absl::StatusOr<ReplayResult> result = absl::InternalError("");
  RETURN_IF_ERROR(
      CatchTorch([&] { result = Replay(recording_.call, *checkpoint_, options, device_); }));
  return result;
}

absl::StatusOr<std::vector<at::Tensor>> Session::ReplayConstructor(uint64_t seed) {
  if (!checkpoint_.has_value()) return absl::FailedPreconditionError("there is no constructor");
  absl::StatusOr<std::vector<at::Tensor>> state = absl::InternalError("");
  RETURN_IF_ERROR(CatchTorch([&] { state = ReplayInit(recording_, seed, device_); }));
  return state;
}

}  // namespace tritonrl::device
