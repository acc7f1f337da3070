// Texts from one rank to another, beside the operations that all ranks make together.
#ifndef TRITONRL_PARALLEL_RANK_MAIL_H_
#define TRITONRL_PARALLEL_RANK_MAIL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tritonrl {

// A text and the rank that it came from.
struct Letter {
  int from = 0;
  std::string text;
};

// Used by one thread at a time. What one rank sends another arrives in order.
class RankMail {
 public:
  // Of a text. Longer ones are refused by the sender (ResourceExhausted).
  static constexpr int64_t kMostBytes = int64_t{256} << 20;

  virtual ~RankMail() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Sends to each rank but this one. Long texts leave when the other asks for them.
  // DeadlineExceeded with the rank that did not within `timeout`.
  virtual absl::Status SendToAll(const std::string& text, absl::Duration timeout) = 0;
  virtual absl::Status Send(int to, const std::string& text, absl::Duration timeout) = 0;
  // The next text of rank `from`. DeadlineExceeded if none came within `timeout`.
  virtual absl::StatusOr<std::string> Receive(int from, absl::Duration timeout) = 0;
  // A text that some rank has sent already, or nothing.
  virtual absl::StatusOr<std::optional<Letter>> Poll() = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_RANK_MAIL_H_
