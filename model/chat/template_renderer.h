// The process that renders a chat template.
#ifndef TRITONRL_MODEL_CHAT_TEMPLATE_RENDERER_H_
#define TRITONRL_MODEL_CHAT_TEMPLATE_RENDERER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/subprocess.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

// Renders one template in a child process that runs render_template.py. A child that died is
// started again for the next rendering; one that exceeds the time limit is killed. Texts are kept,
// so that equal requests are rendered once, except where the template asked for the time.
// Thread-safe; one rendering at a time.
class TemplateRenderer {
 public:
  // Starts the child and compiles `text`, a Jinja2 template. `deadline` limits the compilation and
  // each rendering. InvalidArgument: the template is no Jinja2, or its compilation exceeds a limit.
  // Other errors: the child does not start.
  static absl::StatusOr<std::unique_ptr<TemplateRenderer>> Start(std::string text,
                                                                 absl::Duration deadline);
  ~TemplateRenderer();

  // Renders `messages` (a list of objects) with `variables` (an object). InvalidArgument with the
  // template's message if it raises, with the line if it fails, and if it exceeds a limit of time
  // or memory. Unavailable: the child cannot be started again.
  absl::StatusOr<std::string> Render(const nlohmann::ordered_json& messages,
                                     bool add_generation_prompt,
                                     const nlohmann::ordered_json& variables) const;

  // Process id of the child, 0 if there is none; for tests.
  pid_t pid() const;

 private:
  struct Child {
    Subprocess process;
    std::unique_ptr<ScopedFd> socket;
    std::string unread;  // bytes behind the last line
  };

  TemplateRenderer(std::string text, absl::Duration deadline);

  absl::Status StartChild() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CompileInChild() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends a line and returns the answer. Aborted: the child ended. DeadlineExceeded: it took
  // longer than `limit`. Either way there is no child afterwards.
  absl::StatusOr<nlohmann::ordered_json> Exchange(const std::string& line,
                                                  absl::Duration limit) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<nlohmann::ordered_json> ReadAnswer(absl::Time end) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Send(absl::string_view line, absl::Time end) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ChildEnded() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TookTooLong(absl::Duration limit) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Keep(const std::string& request, const std::string& text) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string text_;
  const absl::Duration deadline_;
  mutable absl::Mutex mutex_;
  mutable std::optional<Child> child_ ABSL_GUARDED_BY(mutex_);
  mutable absl::flat_hash_map<std::string, std::string> kept_ ABSL_GUARDED_BY(mutex_);
  mutable size_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CHAT_TEMPLATE_RENDERER_H_
