#include "parallel/mpi_rank_mail.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "parallel/mpi_wait.h"

namespace tritonrl {
namespace {

constexpr int kTag = 1;  // of texts; nothing else goes from one rank to another
// A text that has begun to arrive does so at once, unless the sender is lost.
constexpr absl::Duration kArrival = absl::Seconds(60);

// Sleeps that grow with the time waited: short while steps follow each other, few when idle.
class Patience {
 public:
  void Pause() {
    absl::SleepFor(
        std::clamp((absl::Now() - begin_) / 100, absl::Microseconds(10), absl::Milliseconds(5)));
  }

 private:
  const absl::Time begin_ = absl::Now();
};

}  // namespace

MpiRankMail::~MpiRankMail() {
  // A text that never left belongs to MPI until the process ends, and so it is not freed.
  if (!sending_.empty()) (void)std::make_unique<std::list<Sending>>(std::move(sending_)).release();
}

absl::Status MpiRankMail::Begin(int to, const std::string& text) {
  if (static_cast<int64_t>(text.size()) > kMostBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("a text of ", text.size(), " bytes for rank ",
                                                     to, "; the most is ", kMostBytes));
  }
  Sending& next = sending_.emplace_back(Sending{to, text});
  const int code = MPI_Isend(next.text.data(), static_cast<int>(next.text.size()), MPI_BYTE, to,
                             kTag, comm_, &next.request);
  return code == MPI_SUCCESS ? absl::OkStatus() : MpiError(code, "a text to another rank");
}

absl::Status MpiRankMail::AwaitSent(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  Patience patience;
  while (!sending_.empty()) {
    int done = 0;
    Sending& oldest = sending_.front();
    const int code = MPI_Test(&oldest.request, &done, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return MpiError(code, "a text to another rank");
    if (done) {
      sending_.pop_front();
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

absl::Status MpiRankMail::Send(int to, const std::string& text, absl::Duration timeout) {
  RETURN_IF_ERROR(Begin(to, text));
  return AwaitSent(timeout);
}

absl::Status MpiRankMail::SendToAll(const std::string& text, absl::Duration timeout) {
  for (int to = 0; to < size_; ++to) {
    if (to != rank_) RETURN_IF_ERROR(Begin(to, text));
  }
  return AwaitSent(timeout);
}

absl::StatusOr<std::optional<Letter>> MpiRankMail::PollFrom(int source) {
  int there = 0, bytes = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  int code = MPI_Improbe(source, kTag, comm_, &there, &message, &status);
  if (code != MPI_SUCCESS) return MpiError(code, "a text from another rank");
  if (!there) return std::nullopt;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  auto letter = std::make_unique<Letter>();
  letter->from = status.MPI_SOURCE;
  letter->text.resize(bytes);
  const absl::Status arrived = AwaitMpi(
      [&](MPI_Request* request) {
        return MPI_Imrecv(letter->text.data(), bytes, MPI_BYTE, &message, request);
      },
      "a text on its way", rank_, kArrival, bytes);
  if (arrived.ok()) return std::move(*letter);
  (void)letter.release();  // MPI may still write there
  return arrived;
}

absl::StatusOr<std::optional<Letter>> MpiRankMail::Poll() { return PollFrom(MPI_ANY_SOURCE); }

absl::StatusOr<std::string> MpiRankMail::Receive(int from, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  Patience patience;
  while (true) {
    ASSIGN_OR_RETURN(std::optional<Letter> letter, PollFrom(from));
    if (letter.has_value()) return std::move(letter->text);
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("rank ", rank_, ": nothing was heard of rank ", from, " for ",
                       absl::FormatDuration(timeout), "; it is stuck or gone"));
    }
    patience.Pause();
  }
}

}  // namespace tritonrl
