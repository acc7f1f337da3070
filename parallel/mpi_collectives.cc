#include "parallel/mpi_collectives.h"

#include <ATen/ops/empty.h>
#include <sched.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr double kMinBytesPerSecond = 2e8;  // of MPI over sockets or shared memory
constexpr int kMessageTag = 1;
// Deadline for the rest of a message that has begun to arrive.
constexpr absl::Duration kArrivalTimeout = absl::Seconds(60);

// The tensors and counts of one operation.
struct Buffers {
  at::Tensor send, receive;
  std::vector<int> counts, offsets;
};

// Keeps the target of `buffers` alive until the process ends.
void Leak(std::shared_ptr<const void> buffers) {
  (void)std::make_unique<std::shared_ptr<const void>>(std::move(buffers)).release();
}

// Polls the request until it is complete. MPI moves bytes only inside its own calls, a few
// fragments per call, so there is no pause between polls for the time that operation.bytes need at
// kMinBytesPerSecond. Then pauses grow to one millisecond, because ranks may share cores with the
// verifier's workers.
absl::Status PollRequest(MPI_Request request, const MpiOperation& operation, int rank,
                         absl::Duration timeout) {
  const absl::Time begin = absl::Now(), deadline = begin + timeout;
  const absl::Time busy_until =
      begin + absl::Seconds(static_cast<double>(operation.bytes) / kMinBytesPerSecond);
  absl::Duration pause = absl::Microseconds(20);
  while (true) {
    int done = 0;
    const int tested = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (tested != MPI_SUCCESS) return MpiError(tested, operation.what);
    if (done) return absl::OkStatus();
    const absl::Time now = absl::Now();
    if (now > deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "rank ", rank, ": the other ranks did not answer in ", operation.what, " within ",
          absl::FormatDuration(timeout), "; one of them is stuck or gone"));
    }
    if (now < busy_until) {
      sched_yield();
      continue;
    }
    if (operation.error_poll) RETURN_IF_ERROR(operation.error_poll());
    absl::SleepFor(pause);
    pause = std::min(pause * 2, absl::Milliseconds(1));
  }
}

absl::Status Complete(const MpiOperation& operation, int rank, absl::Duration timeout) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int started = operation.start(&request);
  if (started != MPI_SUCCESS) return MpiError(started, operation.what);
  absl::Status status = PollRequest(request, operation, rank, timeout);
  if (!status.ok()) Leak(operation.buffers);
  return status;
}

// Sleeps before the next poll for a message, for a hundredth of the time waited so far: the pause
// is short while steps follow each other and long when the rank is idle.
void PauseSince(absl::Time begin) {
  absl::SleepFor(
      std::clamp((absl::Now() - begin) / 100, absl::Microseconds(10), absl::Milliseconds(5)));
}

int64_t Bytes(const at::Tensor& x) { return static_cast<int64_t>(x.nbytes()); }

}  // namespace

absl::Status MpiError(int code, const std::string& what) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return absl::UnavailableError(absl::StrCat(what, " failed: ", std::string(text, length)));
}

MpiCollectives::~MpiCollectives() {
  // MPI still reads the messages whose sends are not complete.
  if (!pending_sends_.empty())
    Leak(std::make_shared<std::list<PendingSend>>(std::move(pending_sends_)));
}

absl::Status MpiCollectives::Record(absl::Status status) {
  lost_ |= !status.ok();
  return status;
}

absl::Status MpiCollectives::Run(const MpiOperation& operation,
                                 std::optional<absl::Duration> timeout) {
  if (lost_) {
    return absl::UnavailableError(
        absl::StrCat("rank ", rank_, ": ", operation.what, ": the other ranks are lost"));
  }
  return Record(Complete(operation, rank_, timeout.value_or(timeout_)));
}

absl::Status MpiCollectives::AllReduce(const at::Tensor& x) {
  if (!x.is_cpu() || x.scalar_type() != at::kFloat || !x.is_contiguous()) {
    return absl::InternalError("an all-reduce over MPI needs a contiguous fp32 tensor on the CPU");
  }
  if (Bytes(x) > std::numeric_limits<int>::max()) {
    return absl::InternalError("an all-reduce over MPI needs a tensor below 2 GiB");
  }
  const int64_t count = x.numel();
  const auto buffers = std::make_shared<Buffers>();
  buffers->receive = at::empty({size_, count}, at::kFloat);
  buffers->receive.select(0, rank_).copy_(x.view(-1));
  RETURN_IF_ERROR(Run({.what = "an all-reduce",
                       .start =
                           [&](MPI_Request* request) {
                             return MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL,
                                                   buffers->receive.mutable_data_ptr(),
                                                   static_cast<int>(x.nbytes()), MPI_BYTE, comm_,
                                                   request);
                           },
                       .buffers = buffers,
                       .bytes = Bytes(buffers->receive),
                       .error_poll = [this] { return PollError(); }}));
  // Every rank adds in the order of ranks, so that all ranks get the same bits.
  const auto* part = buffers->receive.const_data_ptr<float>();
  float* sum = x.mutable_data_ptr<float>();
  std::copy_n(part, count, sum);
  for (int rank = 1; rank < size_; ++rank) {
    part += count;
    for (int64_t i = 0; i < count; ++i) sum[i] += part[i];
  }
  return absl::OkStatus();
}

absl::Status MpiCollectives::ReduceScatter(const ZeroShardPlan& plan, int64_t bucket,
                                           const at::Tensor& full, const at::Tensor& local,
                                           bool accumulate) {
  if (full.scalar_type() != at::kFloat || !full.is_contiguous()) {
    return absl::InternalError("a reduce-scatter needs contiguous fp32 tensors");
  }
  const FlatRange range = plan.Bucket(bucket);
  const auto buffers = std::make_shared<Buffers>();
  for (int r = 0; r < size_; ++r) {
    buffers->counts.push_back(static_cast<int>(plan.Shard(bucket, r).size()));
  }
  const int count = buffers->counts[rank_];
  buffers->send = full.narrow(0, range.begin, range.size()).cpu();
  buffers->receive = at::empty({count}, at::kFloat);
  RETURN_IF_ERROR(Run({.what = "a reduce-scatter",
                       .start =
                           [&](MPI_Request* request) {
                             return MPI_Ireduce_scatter(buffers->send.const_data_ptr(),
                                                        buffers->receive.mutable_data_ptr(),
                                                        buffers->counts.data(), MPI_FLOAT, MPI_SUM,
                                                        comm_, request);
                           },
                       .buffers = buffers,
                       .bytes = Bytes(buffers->send)}));
  const at::Tensor shard = local.narrow(0, plan.LocalOffset(bucket, rank_), count);
  if (accumulate) {
    shard.add_(buffers->receive.to(shard.device()));
  } else {
    shard.copy_(buffers->receive);
  }
  return absl::OkStatus();
}

absl::Status MpiCollectives::AllGather(const ZeroShardPlan& plan, int64_t bucket,
                                       const at::Tensor& full) {
  const int64_t width = static_cast<int64_t>(full.element_size());
  const FlatRange range = plan.Bucket(bucket);
  const auto buffers = std::make_shared<Buffers>();
  for (int r = 0; r < size_; ++r) {  // counts and offsets are in bytes
    const FlatRange shard = plan.Shard(bucket, r);
    buffers->counts.push_back(static_cast<int>(shard.size() * width));
    buffers->offsets.push_back(static_cast<int>((shard.begin - range.begin) * width));
  }
  const at::Tensor elements = full.narrow(0, range.begin, range.size());
  buffers->receive = elements.cpu();  // the same memory if `full` is in CPU memory
  RETURN_IF_ERROR(Run({.what = "an all-gather",
                       .start =
                           [&](MPI_Request* request) {
                             return MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL,
                                                    buffers->receive.mutable_data_ptr(),
                                                    buffers->counts.data(), buffers->offsets.data(),
                                                    MPI_BYTE, comm_, request);
                           },
                       .buffers = buffers,
                       .bytes = Bytes(buffers->receive)}));
  if (!elements.is_cpu()) elements.copy_(buffers->receive);
  return absl::OkStatus();
}

absl::Status MpiCollectives::Broadcast(const at::Tensor& x, int root) {
  if (!x.is_contiguous() || Bytes(x) > std::numeric_limits<int>::max()) {
    return absl::InternalError("a broadcast needs a contiguous tensor below 2 GiB");
  }
  const auto buffers = std::make_shared<Buffers>();
  buffers->receive = x.cpu();  // the same memory if x is in CPU memory
  RETURN_IF_ERROR(Run({.what = "a broadcast",
                       .start =
                           [&](MPI_Request* request) {
                             return MPI_Ibcast(buffers->receive.mutable_data_ptr(),
                                               static_cast<int>(Bytes(x)), MPI_BYTE, root, comm_,
                                               request);
                           },
                       .buffers = buffers,
                       .bytes = Bytes(x),
                       .error_poll = [this] { return PollError(); }}));
  if (!x.is_cpu() && rank_ != root) x.copy_(buffers->receive);
  return absl::OkStatus();
}

absl::Status MpiCollectives::Await(absl::FunctionRef<bool()> done, const char* what) {
  return done() ? absl::OkStatus()
                : absl::InternalError(absl::StrCat(what, ": ranks on a CPU wait for no GPU"));
}

absl::Status MpiCollectives::StartSend(int to, const std::string& message) {
  if (static_cast<int64_t>(message.size()) > kMaxMessageBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("a message of ", message.size(),
                                                     " bytes for rank ", to, "; the limit is ",
                                                     kMaxMessageBytes));
  }
  PendingSend& next = pending_sends_.emplace_back(PendingSend{to, message});
  const int code = MPI_Isend(next.text.data(), static_cast<int>(next.text.size()), MPI_BYTE, to,
                             kMessageTag, comm_, &next.request);
  return code == MPI_SUCCESS ? absl::OkStatus() : MpiError(code, "a message to another rank");
}

absl::Status MpiCollectives::FlushSends(absl::Duration timeout) {
  const absl::Time begin = absl::Now();
  while (!pending_sends_.empty()) {
    int done = 0;
    PendingSend& oldest = pending_sends_.front();
    const int code = MPI_Test(&oldest.request, &done, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return MpiError(code, "a message to another rank");
    if (done) {
      pending_sends_.pop_front();
      continue;
    }
    if (absl::Now() > begin + timeout) {
      return absl::DeadlineExceededError(
          absl::StrCat("rank ", rank_, ": rank ", oldest.to, " received no message within ",
                       absl::FormatDuration(timeout), "; it is stuck or gone"));
    }
    PauseSince(begin);
  }
  return absl::OkStatus();
}

absl::Status MpiCollectives::Send(int to, const std::string& message, absl::Duration timeout) {
  RETURN_IF_ERROR(StartSend(to, message));
  return FlushSends(timeout);
}

absl::Status MpiCollectives::SendToAll(const std::string& message, absl::Duration timeout) {
  for (int to = 0; to < size_; ++to) {
    if (to != rank_) RETURN_IF_ERROR(StartSend(to, message));
  }
  return FlushSends(timeout);
}

absl::StatusOr<std::optional<RankMessage>> MpiCollectives::PollFrom(int source) {
  int there = 0, bytes = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  const int code = MPI_Improbe(source, kMessageTag, comm_, &there, &message, &status);
  if (code != MPI_SUCCESS) return MpiError(code, "a message from another rank");
  if (!there) return std::nullopt;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  const auto received = std::make_shared<RankMessage>();
  received->from = status.MPI_SOURCE;
  received->text.resize(bytes);
  RETURN_IF_ERROR(Complete({.what = "the arrival of a message",
                            .start =
                                [&](MPI_Request* request) {
                                  return MPI_Imrecv(received->text.data(), bytes, MPI_BYTE,
                                                    &message, request);
                                },
                            .buffers = received,
                            .bytes = bytes},
                           rank_, kArrivalTimeout));
  return std::move(*received);
}

absl::StatusOr<std::optional<RankMessage>> MpiCollectives::Poll() {
  return PollFrom(MPI_ANY_SOURCE);
}

absl::StatusOr<std::string> MpiCollectives::Receive(int from, absl::Duration timeout) {
  const absl::Time begin = absl::Now();
  while (true) {
    ASSIGN_OR_RETURN(std::optional<RankMessage> received, PollFrom(from));
    if (received.has_value()) return std::move(received->text);
    if (absl::Now() > begin + timeout) {
      return absl::DeadlineExceededError(absl::StrCat("rank ", rank_, ": no message of rank ", from,
                                                      " within ", absl::FormatDuration(timeout),
                                                      "; it is stuck or gone"));
    }
    PauseSince(begin);
  }
}

}  // namespace tritonrl
