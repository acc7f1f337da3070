// Renders a chat template in a process of its own.
#ifndef TRITONRL_MODEL_CHAT_TEMPLATE_RENDERER_H_
#define TRITONRL_MODEL_CHAT_TEMPLATE_RENDERER_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "model/chat/chat_template.h"
#include "model/chat/template_process.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

// A text to render: of the first `messages` messages of a conversation.
struct Rendering {
  size_t messages = 0;
  bool add_generation_prompt = false;
};

// Texts in the order in which they were asked for, up to the first that fails.
struct RenderedTexts {
  std::vector<std::string> texts;
  absl::Status status;  // why the next text is missing; OK if none is
  bool dated = false;   // whether a text holds the time
};

// Renders one template in a child process that runs render_template.py. A child that died is
// started again for the next rendering; one that exceeds the time limit is killed. Thread-safe; one
// call renders at a time.
class TemplateRenderer {
 public:
  // Starts the child and compiles `text`, a Jinja2 template. `deadline` limits the compilation and
  // each rendering. InvalidArgument: the template is no Jinja2, or its compilation exceeds a limit.
  // Other errors: the child does not start.
  static absl::StatusOr<std::unique_ptr<TemplateRenderer>> Start(std::string text,
                                                                 absl::Duration deadline);
  ~TemplateRenderer();

  // Renders `messages` with `variables` (an object). InvalidArgument with the template's message if
  // it raises, with the line if it fails, and if it exceeds a limit of time or memory. Unavailable:
  // the child cannot be started again. Texts are kept, so that equal requests are rendered once,
  // except where the template asked for the time.
  absl::StatusOr<std::string> Render(std::span<const ChatMessage> messages,
                                     bool add_generation_prompt,
                                     const nlohmann::ordered_json& variables) const;

  // Renders several texts of one conversation, each within the deadline, in one exchange with the
  // child. Errors are those of Render; no text is kept.
  RenderedTexts RenderAll(std::span<const ChatMessage> messages,
                          std::span<const Rendering> renderings,
                          const nlohmann::ordered_json& variables) const;

  // Those of `names` that the template does not read as variables, so that setting them changes
  // nothing. Errors as for Render.
  absl::StatusOr<std::vector<std::string>> UnknownVariables(
      const std::vector<std::string>& names) const;

  // Process id of the child, 0 if there is none; for tests.
  pid_t pid() const;

 private:
  TemplateRenderer(std::string text, absl::Duration deadline);

  // Starts a child and compiles the template in it.
  absl::Status StartChild() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The texts of a request for `count` of them.
  RenderedTexts RenderRequest(const std::string& request, size_t count) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same by one child, which is started if there is none. The status is Aborted if it ended and
  // DeadlineExceeded if it took too long; either way there is no child afterwards.
  RenderedTexts RenderInChild(const std::string& request, size_t count) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Keep(const std::string& request, const std::string& text) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string text_;
  const absl::Duration deadline_;
  mutable absl::Mutex mutex_;
  mutable std::optional<TemplateProcess> child_ ABSL_GUARDED_BY(mutex_);
  mutable absl::flat_hash_map<std::string, std::string> kept_ ABSL_GUARDED_BY(mutex_);
  mutable size_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CHAT_TEMPLATE_RENDERER_H_
