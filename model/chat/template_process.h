// The process that renders a chat template, and the connection to it.
#ifndef TRITONRL_MODEL_CHAT_TEMPLATE_PROCESS_H_
#define TRITONRL_MODEL_CHAT_TEMPLATE_PROCESS_H_

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/subprocess.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

// A process that runs render_template.py, which describes the requests and replies. It is killed
// with this object. Not thread-safe.
class TemplateProcess {
 public:
  struct Answer {
    nlohmann::ordered_json head;
    std::string text;  // what follows the head, if it gives a size of "text"
    // InvalidArgument with the sentence that the process wrote, which may quote the template.
    absl::Status Error() const;
    bool Flag(const char* name) const;  // false if it is missing
  };

  // Unavailable, with the command line: the process does not start.
  static absl::StatusOr<TemplateProcess> Start();

  // Sends `request`, if it is not empty, and returns the next reply. Aborted: the process ended or
  // its reply is malformed. DeadlineExceeded: this took longer than `limit`. After an error there
  // is no further exchange.
  absl::StatusOr<Answer> Exchange(absl::string_view request, absl::Duration limit);

  pid_t pid() const { return process_.pid(); }

 private:
  TemplateProcess(Subprocess process, std::unique_ptr<ScopedFd> socket)
      : process_(std::move(process)), socket_(std::move(socket)) {}

  absl::Status Send(absl::string_view bytes, absl::Time end);
  // Waits for bytes and stores at most `room` of them; returns how many.
  absl::StatusOr<size_t> Receive(char* bytes, size_t room, absl::Time end);
  absl::StatusOr<Answer> ReadAnswer(absl::Time end);
  absl::Status Ended();

  Subprocess process_;
  std::unique_ptr<ScopedFd> socket_;
  std::string unread_;  // bytes after the last reply
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CHAT_TEMPLATE_PROCESS_H_
