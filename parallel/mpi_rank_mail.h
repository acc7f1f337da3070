// Texts between ranks by MPI.
#ifndef TRITONRL_PARALLEL_MPI_RANK_MAIL_H_
#define TRITONRL_PARALLEL_MPI_RANK_MAIL_H_

#include <mpi.h>

#include <list>
#include <optional>
#include <string>

#include "parallel/rank_mail.h"

namespace tritonrl {

class MpiRankMail : public RankMail {
 public:
  // `comm`, in which this process is number `rank` of `size`, must outlive this object.
  MpiRankMail(MPI_Comm comm, int rank, int size) : comm_(comm), rank_(rank), size_(size) {}
  ~MpiRankMail() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::Status SendToAll(const std::string& text, absl::Duration timeout) override;
  absl::Status Send(int to, const std::string& text, absl::Duration timeout) override;
  absl::StatusOr<std::string> Receive(int from, absl::Duration timeout) override;
  absl::StatusOr<std::optional<Letter>> Poll() override;

 private:
  // On its way to a rank. MPI reads the text until the request is done.
  struct Sending {
    int to = 0;
    std::string text;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  absl::Status Begin(int to, const std::string& text);
  // Until all that was begun has left.
  absl::Status AwaitSent(absl::Duration timeout);
  absl::StatusOr<std::optional<Letter>> PollFrom(int source);

  const MPI_Comm comm_;
  const int rank_, size_;
  std::list<Sending> sending_;
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_MPI_RANK_MAIL_H_
