#include "exec/executor/executor_server.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/file.h"
#include "base/status.h"
#include "exec/device/frame.h"
#include "exec/executor/answer_writer.h"
#include "exec/executor/message_channel.h"
#include "exec/executor/request_message.h"

namespace tritonrl::executor {
namespace {

constexpr size_t kMostPrinted = 16 << 20;  // bytes, of one candidate
constexpr size_t kMostLine = 64 << 10;
constexpr size_t kMostError = 8'000;
constexpr int kMostTimed = 10'000;  // replays of one request

struct Unmap {
  size_t bytes;
  void operator()(const void* memory) const { munmap(const_cast<void*>(memory), bytes); }
};

// Memory that another process fills, for reading.
absl::StatusOr<Region> MapForReading(int fd, bool sealed) {
  struct stat info;
  if (fstat(fd, &info) != 0) return ErrnoStatus(errno, "look at", "memory of a request");
  const auto bytes = static_cast<size_t>(info.st_size);
  // Before kernel 6.7 a write-sealed file may not be mapped shared, even for reading.
  const int kind = (sealed ? MAP_PRIVATE : MAP_SHARED) | MAP_NORESERVE;
  void* const memory = mmap(nullptr, bytes, PROT_READ, kind, fd, 0);
  if (memory == MAP_FAILED) return ErrnoStatus(errno, "map", "memory of a request");
  return Region{absl::string_view(static_cast<const char*>(memory), bytes),
                std::shared_ptr<const void>(memory, Unmap{bytes})};
}

class Server {
 public:
  Server(const ServedDevice& served, Outbox* outbox, Region inbox)
      : served_(served), outbox_(*outbox), regions_{std::move(inbox), Region(), Region()} {}

  absl::Status Serve() {
    RETURN_IF_ERROR(SendReady());
    while (true) {
      Request request;
      std::vector<int> descriptors;
      absl::Status status = ReceiveMessage(kControlSocket, &request, kMaxRequestBytes,
                                           absl::InfiniteFuture(), &descriptors);
      if (status.ok()) status = Handle(request, descriptors);
      for (const int fd : descriptors) close(fd);
      if (absl::IsUnavailable(status)) return absl::OkStatus();  // whoever asked is gone
      RETURN_IF_ERROR(status);
    }
  }

 private:
  absl::Status Handle(const Request& request, const std::vector<int>& descriptors) {
    replayed_.reset();
    replay_placer_.reset();
    if (request.kind_case() != Request::kTime) DropTimed();
    switch (request.kind_case()) {
      case Request::kRun:
        return HandleRun(request.run(), descriptors);
      case Request::kReplay:
        return HandleReplay(request.replay());
      case Request::kConstructor:
        return HandleConstructor(request.constructor());
      case Request::kBeginTiming:
        return HandleBeginTiming(request.begin_timing());
      case Request::kTime:
        return HandleTime(request.time());
      case Request::kEnd:
        Forget();
        return SendReady();
      default:
        return absl::InvalidArgumentError("an empty request");
    }
  }

  bool IsWorn() const { return served_.worn != nullptr && served_.worn(); }

  void DropTimed() {
    if (IsWorn()) (void)timed_.release();
    timed_.reset();
  }

  void Forget() {
    session_placer_.reset();
    DropTimed();
    if (IsWorn()) {
      (void)session_.release();
      return;
    }
    session_.reset();
    exchange_.reset();
    regions_[1] = regions_[2] = Region();
    outbox_.Trim();
    if (served_.rest != nullptr) served_.rest();
  }

  absl::Status HandleRun(const Run& request, const std::vector<int>& descriptors) {
    Forget();
    const bool has_windows = request.input_window_bytes() > 0;
    if (descriptors.size() != (request.has_shared() ? 2 : 1) + (has_windows ? 2 : 0)) {
      return absl::InvalidArgumentError("other descriptors than were announced");
    }
    if (request.has_shared()) {
      ASSIGN_OR_RETURN(regions_[1], MapForReading(descriptors[1], /*sealed=*/true));
    }
    if (has_windows) {
      const absl::Status opened =
          OpenExchange(request, *(descriptors.end() - 2), *(descriptors.end() - 1));
      if (!opened.ok()) {
        Answer answer;
        answer.mutable_run();
        return Send(opened, std::move(answer));
      }
    }
    ASSIGN_OR_RETURN(device::SessionOptions options, ReadOptions(request, regions_));
    options.exchange = exchange_;
    printed_bytes_ = 0;
    if (request.wants_print()) options.print = [this](absl::string_view line) { Print(line); };
    session_ = served_.make(std::move(options));
    device::SocketChannel client(descriptors[0]);
    const absl::StatusOr<device::SessionResult> served = session_->Run(client);
    Answer answer;
    WriteRecording(*session_, answer.mutable_run()->mutable_recording());
    absl::Status status = served.status();
    if (served.ok()) {
      session_placer_.emplace(Placer());
      status = WriteSession(*served, &*session_placer_, answer.mutable_run()->mutable_result());
    }
    return Send(status, std::move(answer));
  }

  absl::Status OpenExchange(const Run& request, int inputs, int outputs) {
    auto exchange = std::make_shared<device::Exchange>();
    ASSIGN_OR_RETURN(exchange->inputs, served_.open_window(inputs, request.input_window_bytes()));
    ASSIGN_OR_RETURN(exchange->outputs,
                     served_.open_window(outputs, request.output_window_bytes()));
    regions_[2].memory =
        absl::string_view(exchange->inputs->base(), static_cast<size_t>(exchange->inputs->bytes()));
    regions_[2].is_window = true;
    regions_[2].device = exchange->inputs->device();
    const absl::Time deadline = TimeOfMessage(request.deadline_ns());
    exchange->provide = [this, deadline](size_t call) {
      Answer answer;
      answer.mutable_handover()->set_call(static_cast<uint32_t>(call));
      return HandOver(answer, deadline);
    };
    exchange->take = [this, deadline](size_t call, const device::Value& output,
                                      bool on_device) -> absl::Status {
      Answer answer;
      answer.mutable_handover()->set_call(static_cast<uint32_t>(call));
      answer.mutable_handover()->set_on_device(on_device);
      OutboxPlacer placer = Placer();
      RETURN_IF_ERROR(WriteValue(output, &placer, answer.mutable_handover()->mutable_output()));
      return HandOver(answer, deadline);
    };
    exchange_ = std::move(exchange);
    return absl::OkStatus();
  }

  // Tells what is wanted or there, and waits until it is provided or taken.
  static absl::Status HandOver(const Answer& answer, absl::Time deadline) {
    RETURN_IF_ERROR(SendMessage(kControlSocket, answer, kMaxAnswerBytes, deadline));
    Request request;
    RETURN_IF_ERROR(ReceiveMessage(kControlSocket, &request, kMaxRequestBytes, deadline));
    if (request.kind_case() != Request::kGoOn) {
      return absl::InternalError("a request while a candidate runs");
    }
    if (request.go_on().code() == 0) return absl::OkStatus();
    return absl::InternalError(request.go_on().error());
  }

  OutboxPlacer Placer() {
    return OutboxPlacer(&outbox_, exchange_ == nullptr ? nullptr : exchange_->outputs.get());
  }

  static device::ReplayOptions OptionsOf(const ReplayRequest& request) {
    device::ReplayOptions options;
    options.inputs = request.inputs;
    options.scale = request.scale;
    options.seed = request.seed;
    options.poison = request.poison;
    options.deadline = request.deadline;
    options.keeps_state = request.keeps_state;
    return options;
  }

  absl::Status HandleReplay(const Replay& message) {
    if (session_ == nullptr) return absl::InvalidArgumentError("a replay without a session");
    ASSIGN_OR_RETURN(const ReplayRequest request, ReadReplay(message, regions_));
    device::ReplayOptions options = OptionsOf(request);
    options.run.count = request.count;
    options.run.skip = [&](const device::LaunchCommand& launch, int64_t number) {
      const SkippedLaunches& skipped = request.skipped;
      return skipped.all || skipped.numbers.count(number) > 0 ||
             skipped.kernels.count(session_->kernels().Find(launch.kernel)->name) > 0;
    };
    options.follow_copies = request.follow_copies;
    options.copy_tolerance = request.copy_tolerance;
    absl::StatusOr<device::ReplayResult> replayed = session_->ReplayCall(options);
    Answer answer;
    absl::Status status = replayed.status();
    if (replayed.ok()) {
      replayed_ = *std::move(replayed);
      replay_placer_.emplace(Placer());
      status = WriteReplayResult(*replayed_, &*replay_placer_, answer.mutable_replay());
    }
    return Send(status, std::move(answer));
  }

  absl::Status HandleConstructor(const ReplayConstructor& message) {
    if (session_ == nullptr) return absl::InvalidArgumentError("a replay without a session");
    Answer answer;
    const absl::Status status = WriteState(message.seed(), answer.mutable_constructor());
    return Send(status, std::move(answer));
  }

  absl::Status HandleBeginTiming(const BeginTiming& message) {
    if (session_ == nullptr) return absl::InvalidArgumentError("a replay without a session");
    if (served_.make_timed == nullptr) {
      return Send(absl::UnimplementedError("this executor has no GPU and takes no times"),
                  Answer());
    }
    ASSIGN_OR_RETURN(const ReplayRequest request, ReadReplay(message.replay(), regions_));
    auto timed = served_.make_timed(session_.get(), OptionsOf(request), message.direct());
    Answer answer;
    if (timed.ok()) {
      timed_ = *std::move(timed);
      answer.mutable_begun()->set_not_a_graph(timed_->not_a_graph().substr(0, kMostError));
    }
    return Send(timed.status(), std::move(answer));
  }

  absl::Status HandleTime(const TimeReplays& message) {
    const TimeRequest request = ReadTimeRequest(message);
    if (timed_ == nullptr || request.count < 1 || request.count > kMostTimed) {
      return absl::InvalidArgumentError("no replays that can be timed");
    }
    Answer answer;
    const absl::Status status = Time(request, answer.mutable_timed());
    return Send(status, std::move(answer));
  }

  absl::Status Time(const TimeRequest& request, TimedReplays* message) {
    timed_->set_deadline(request.deadline);
    std::vector<double> times;
    if (request.with_launches) {
      ASSIGN_OR_RETURN(times.emplace_back(), timed_->MeanWithLaunches(request.count));
    } else {
      ASSIGN_OR_RETURN(times, timed_->Time(request.count));
    }
    replayed_.emplace();
    if (request.output) {
      ASSIGN_OR_RETURN(replayed_->output, timed_->Output());
    }
    replay_placer_.emplace(Placer());
    return WriteTimed(times, request.output ? &replayed_->output : nullptr, &*replay_placer_,
                      message);
  }

  absl::Status WriteState(uint64_t seed, ConstructorResult* message) {
    ASSIGN_OR_RETURN(const std::vector<at::Tensor> state, session_->ReplayConstructor(seed));
    replay_placer_.emplace(Placer());
    replayed_.emplace();
    for (const at::Tensor& tensor : state) {
      replayed_->output.items.push_back(device::Value::Host(tensor));  // keeps it
      ASSIGN_OR_RETURN(*message->add_state(), WriteTensor(tensor, &*replay_placer_));
    }
    return absl::OkStatus();
  }

  // Several threads of a launch may print.
  void Print(absl::string_view line) {
    const absl::MutexLock lock(&mutex_);
    printed_bytes_ += line.size() + 1;
    if (printed_bytes_ > kMostPrinted) return;
    Answer answer;
    answer.set_printed(std::string(line.substr(0, kMostLine)));
    (void)SendMessage(kControlSocket, answer, kMaxAnswerBytes, absl::InfiniteFuture());
  }

  // An answer that cannot be handed over becomes an error.
  absl::Status Send(const absl::Status& status, Answer answer) {
    const absl::Time never = absl::InfiniteFuture();
    absl::Status error = status;
    const bool broken = served_.broken != nullptr && served_.broken();
    if ((absl::IsAborted(error) || absl::IsInternal(error)) && broken) {
      error = absl::OutOfRangeError(error.message());
    }
    if (error.ok()) {
      error = SendMessage(kControlSocket, answer, kMaxAnswerBytes, never);
      if (!absl::IsResourceExhausted(error)) return error;
      error = absl::ResourceExhaustedError("the results have too many parts");
    }
    if (answer.has_run()) answer.mutable_run()->clear_result();
    answer.set_code(static_cast<int32_t>(error.code()));
    answer.set_error(std::string(error.message().substr(0, kMostError)));
    return SendMessage(kControlSocket, answer, kMaxAnswerBytes, never);
  }

  absl::Status SendReady() {
    Answer answer;
    if (served_.gpu.has_value()) WriteGpu(*served_.gpu, answer.mutable_ready());
    answer.mutable_ready()->set_worn(IsWorn());
    return SendMessage(kControlSocket, answer, kMaxAnswerBytes, absl::InfiniteFuture());
  }

  const ServedDevice& served_;
  Outbox& outbox_;
  std::array<Region, kRegions> regions_;
  std::shared_ptr<device::Exchange> exchange_;  // outlives the session
  std::unique_ptr<device::Session> session_;
  std::optional<OutboxPlacer> session_placer_;
  std::unique_ptr<device::TimedCall> timed_;
  // What the last answer's tensors refer to.
  std::optional<device::ReplayResult> replayed_;
  std::optional<OutboxPlacer> replay_placer_;
  absl::Mutex mutex_;
  size_t printed_bytes_ = 0;
};

}  // namespace

absl::Status Serve(const ServedDevice& served, Outbox* outbox) {
  ASSIGN_OR_RETURN(Region inbox, MapForReading(kInboxMemory, /*sealed=*/false));
  // It is not taken down: a kernel that does not end would be waited for.
  return (new Server(served, outbox, std::move(inbox)))->Serve();
}

}  // namespace tritonrl::executor
