// Operations on pieces through host memory, by MPI.
#ifndef TRITONRL_PARALLEL_MPI_PIECES_H_
#define TRITONRL_PARALLEL_MPI_PIECES_H_

#include <mpi.h>

#include <string>
#include <utility>

#include "absl/time/time.h"
#include "parallel/piece_exchange.h"

namespace tritonrl {

class MpiPieces : public PieceExchange {
 public:
  // `comm` must outlive this object. `rank` and `where` (" between nodes") name this process and
  // the group in errors; `timeout` is the deadline of each operation.
  MpiPieces(MPI_Comm comm, int rank, std::string where, absl::Duration timeout)
      : comm_(comm), rank_(rank), where_(std::move(where)), timeout_(timeout) {}

  absl::Status ReduceScatter(const at::Tensor& send, const at::Tensor& receive) override;
  absl::Status AllGather(const at::Tensor& send, const at::Tensor& receive) override;

 private:
  const MPI_Comm comm_;
  const int rank_;
  const std::string where_;
  const absl::Duration timeout_;
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_MPI_PIECES_H_
