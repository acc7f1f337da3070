#include "parallel/mpi_collectives.h"

#include <ATen/ops/empty.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"

namespace tritonrl {

namespace {

constexpr double kBytesPerSecond = 2e8;  // that move at the least, through sockets or shared memory

}  // namespace

absl::Status MpiError(int code, const std::string& what) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return absl::UnavailableError(absl::StrCat(what, " failed: ", std::string(text, length)));
}

// MPI moves bytes only while it is asked, a few fragments at a time, so that it is asked without a
// pause for as long as they may take. Then sleeps grow to one millisecond: ranks may share cores
// with the verifier's workers.
absl::Status AwaitMpi(const std::function<int(MPI_Request*)>& start, const std::string& what,
                      int rank, absl::Duration timeout, int64_t bytes,
                      const std::function<absl::Status()>& error_poll) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int started = start(&request);
  if (started != MPI_SUCCESS) return MpiError(started, what);
  const absl::Time begin = absl::Now(), deadline = begin + timeout;
  const absl::Time moving = begin + absl::Seconds(static_cast<double>(bytes) / kBytesPerSecond);
  absl::Duration pause = absl::Microseconds(20);
  while (true) {
    int done = 0;
    const int tested = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (tested != MPI_SUCCESS) return MpiError(tested, what);
    if (done) return absl::OkStatus();
    const absl::Time now = absl::Now();
    if (now > deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("rank ", rank, ": the other ranks did not answer in ", what, " within ",
                       absl::FormatDuration(timeout), "; one of them is stuck or gone"));
    }
    if (now < moving) {
      sched_yield();
      continue;
    }
    if (error_poll) RETURN_IF_ERROR(error_poll());
    absl::SleepFor(pause);
    pause = std::min(pause * 2, absl::Milliseconds(1));
  }
}

absl::Status MpiShardCollectives::ReduceScatter(const ShardPlan& plan, int64_t bucket,
                                                const at::Tensor& full, const at::Tensor& local,
                                                bool add) {
  const FlatRange range = plan.Bucket(bucket);
  std::vector<int> counts(size_);
  for (int r = 0; r < size_; ++r) counts[r] = static_cast<int>(plan.Shard(bucket, r).size());
  const at::Tensor all = full.narrow(0, range.begin, range.size()).cpu();
  const at::Tensor mine = at::empty({counts[rank_]}, at::kFloat);
  RETURN_IF_ERROR(AwaitMpi(
      [&](MPI_Request* request) {
        return MPI_Ireduce_scatter(all.const_data_ptr(), mine.mutable_data_ptr(), counts.data(),
                                   MPI_FLOAT, MPI_SUM, comm_, request);
      },
      "the gradient reduce-scatter", rank_, timeout_, static_cast<int64_t>(all.nbytes())));
  const at::Tensor place = local.narrow(0, plan.LocalOffset(bucket, rank_), counts[rank_]);
  if (add) {
    place.add_(mine.to(place.device()));
  } else {
    place.copy_(mine);
  }
  return absl::OkStatus();
}

absl::Status MpiShardCollectives::AllGather(const ShardPlan& plan, int64_t bucket,
                                            const at::Tensor& full) {
  const int64_t width = static_cast<int64_t>(full.element_size());
  const FlatRange range = plan.Bucket(bucket);
  std::vector<int> counts(size_), offsets(size_);  // in bytes
  for (int r = 0; r < size_; ++r) {
    const FlatRange shard = plan.Shard(bucket, r);
    counts[r] = static_cast<int>(shard.size() * width);
    offsets[r] = static_cast<int>((shard.begin - range.begin) * width);
  }
  const at::Tensor part = full.narrow(0, range.begin, range.size());
  const at::Tensor all = part.cpu();  // the same memory where it is the host's
  RETURN_IF_ERROR(AwaitMpi(
      [&](MPI_Request* request) {
        return MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all.mutable_data_ptr(),
                               counts.data(), offsets.data(), MPI_BYTE, comm_, request);
      },
      "the weight all-gather", rank_, timeout_, static_cast<int64_t>(all.nbytes())));
  if (!part.is_cpu()) part.copy_(all);
  return absl::OkStatus();
}

absl::Status MpiShardCollectives::Broadcast(const at::Tensor& part, int root) {
  const at::Tensor all = part.cpu();  // the same memory where it is the host's
  RETURN_IF_ERROR(AwaitMpi(
      [&](MPI_Request* request) {
        return MPI_Ibcast(all.mutable_data_ptr(), static_cast<int>(all.nbytes()), MPI_BYTE, root,
                          comm_, request);
      },
      "the broadcast of weights", rank_, timeout_, static_cast<int64_t>(all.nbytes())));
  if (!part.is_cpu() && rank_ != root) part.copy_(all);
  return absl::OkStatus();
}

MpiStreamCollectives::~MpiStreamCollectives() {
  // An operation that was given up may still write there.
  if (lost_) (void)std::make_unique<std::vector<uint8_t>>(std::move(buffer_)).release();
}

absl::Status MpiStreamCollectives::Finish(const std::function<int(MPI_Request*)>& start,
                                          const char* what) {
  if (lost_) return absl::UnavailableError("the other ranks were lost before");
  const absl::Status status =
      AwaitMpi(start, what, rank_, timeout_, static_cast<int64_t>(buffer_.size()),
               [this] { return PollError(); });
  lost_ = !status.ok();
  return status;
}

absl::Status MpiStreamCollectives::AllReduce(const at::Tensor& x) {
  if (!x.is_cpu() || x.scalar_type() != at::kFloat || !x.is_contiguous()) {
    return absl::InternalError("sums through CPU memory are of contiguous fp32 tensors there");
  }
  const int64_t count = x.numel(), bytes = count * static_cast<int64_t>(sizeof(float));
  buffer_.resize(size_ * bytes);
  std::memcpy(buffer_.data() + rank_ * bytes, x.const_data_ptr(), bytes);
  RETURN_IF_ERROR(Finish(
      [&](MPI_Request* request) {
        return MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer_.data(),
                              static_cast<int>(bytes), MPI_BYTE, comm_, request);
      },
      "a tensor-parallel all-reduce"));
  // Every rank adds in the order of ranks, so that all have the same bits.
  float* sum = x.mutable_data_ptr<float>();
  std::memcpy(sum, buffer_.data(), bytes);
  for (int rank = 1; rank < size_; ++rank) {
    const auto* part = reinterpret_cast<const float*>(buffer_.data()) + rank * count;
    for (int64_t i = 0; i < count; ++i) sum[i] += part[i];
  }
  return absl::OkStatus();
}

absl::Status MpiStreamCollectives::Broadcast(const at::Tensor& x) {
  if (!x.is_cpu() || !x.is_contiguous()) {
    return absl::InternalError("what is shared through CPU memory is contiguous there");
  }
  buffer_.resize(x.nbytes());
  std::memcpy(buffer_.data(), x.const_data_ptr(), buffer_.size());
  RETURN_IF_ERROR(Finish(
      [&](MPI_Request* request) {
        return MPI_Ibcast(buffer_.data(), static_cast<int>(buffer_.size()), MPI_BYTE, 0, comm_,
                          request);
      },
      "the broadcast of sampled tokens"));
  std::memcpy(x.mutable_data_ptr(), buffer_.data(), buffer_.size());
  return absl::OkStatus();
}

absl::Status MpiStreamCollectives::Await(absl::FunctionRef<bool()> done, const char* what) {
  return done() ? absl::OkStatus()
                : absl::InternalError(absl::StrCat(what, ": ranks on a CPU wait for no GPU"));
}

namespace {

constexpr int kTag = 1;  // of texts; nothing else goes from one rank to another
// A text that has begun to arrive does so at once, unless the sender is lost.
constexpr absl::Duration kArrival = absl::Seconds(60);

// Sleeps that grow with the time waited: short while steps follow each other, few when idle.
class SendDeadline {
 public:
  void Pause() {
    absl::SleepFor(
        std::clamp((absl::Now() - begin_) / 100, absl::Microseconds(10), absl::Milliseconds(5)));
  }

 private:
  const absl::Time begin_ = absl::Now();
};

}  // namespace

MpiPointToPoint::~MpiPointToPoint() {
  // A text that never left belongs to MPI until the process ends, and so it is not freed.
  if (!pending_sends_.empty())
    (void)std::make_unique<std::list<PendingSend>>(std::move(pending_sends_)).release();
}

absl::Status MpiPointToPoint::StartSend(int to, const std::string& text) {
  if (static_cast<int64_t>(text.size()) > kMaxBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("a text of ", text.size(), " bytes for rank ",
                                                     to, "; the most is ", kMaxBytes));
  }
  PendingSend& next = pending_sends_.emplace_back(PendingSend{to, text});
  const int code = MPI_Isend(next.text.data(), static_cast<int>(next.text.size()), MPI_BYTE, to,
                             kTag, comm_, &next.request);
  return code == MPI_SUCCESS ? absl::OkStatus() : MpiError(code, "a text to another rank");
}

absl::Status MpiPointToPoint::FlushSends(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  SendDeadline patience;
  while (!pending_sends_.empty()) {
    int done = 0;
    PendingSend& oldest = pending_sends_.front();
    const int code = MPI_Test(&oldest.request, &done, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return MpiError(code, "a text to another rank");
    if (done) {
      pending_sends_.pop_front();
      continue;
    }
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("rank ", rank_, ": rank ", oldest.to, " took no text within ",
                       absl::FormatDuration(timeout), "; it is stuck or gone"));
    }
    patience.Pause();
  }
  return absl::OkStatus();
}

absl::Status MpiPointToPoint::Send(int to, const std::string& text, absl::Duration timeout) {
  RETURN_IF_ERROR(StartSend(to, text));
  return FlushSends(timeout);
}

absl::Status MpiPointToPoint::SendToAll(const std::string& text, absl::Duration timeout) {
  for (int to = 0; to < size_; ++to) {
    if (to != rank_) RETURN_IF_ERROR(StartSend(to, text));
  }
  return FlushSends(timeout);
}

absl::StatusOr<std::optional<RankMessage>> MpiPointToPoint::PollFrom(int source) {
  int there = 0, bytes = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  int code = MPI_Improbe(source, kTag, comm_, &there, &message, &status);
  if (code != MPI_SUCCESS) return MpiError(code, "a text from another rank");
  if (!there) return std::nullopt;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  auto received = std::make_unique<RankMessage>();
  received->from = status.MPI_SOURCE;
  received->text.resize(bytes);
  const absl::Status arrived = AwaitMpi(
      [&](MPI_Request* request) {
        return MPI_Imrecv(received->text.data(), bytes, MPI_BYTE, &message, request);
      },
      "a text on its way", rank_, kArrival, bytes);
  if (arrived.ok()) return std::move(*received);
  (void)received.release();  // MPI may still write there
  return arrived;
}

absl::StatusOr<std::optional<RankMessage>> MpiPointToPoint::Poll() {
  return PollFrom(MPI_ANY_SOURCE);
}

absl::StatusOr<std::string> MpiPointToPoint::Receive(int from, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  SendDeadline patience;
  while (true) {
    ASSIGN_OR_RETURN(std::optional<RankMessage> received, PollFrom(from));
    if (received.has_value()) return std::move(received->text);
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("rank ", rank_, ": nothing was heard of rank ", from, " for ",
                       absl::FormatDuration(timeout), "; it is stuck or gone"));
    }
    patience.Pause();
  }
}

}  // namespace tritonrl
