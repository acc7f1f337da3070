#include "model/chat/template_renderer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/status.h"
#include "base/utf8.h"

namespace tritonrl {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxKeptBytes = 16 << 20;

std::string Line(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace) + "\n";
}

// A line of JSON, then the contents as they are: escaping and parsing them costs more
// than the rendering.
std::string RequestOf(std::span<const ChatMessage> messages, std::span<const Rendering> renderings,
                      const Json& variables, absl::Duration deadline) {
  Json list = Json::array(), wanted = Json::array();
  std::vector<absl::string_view> parts = {""};
  for (const ChatMessage& message : messages) {
    Json entry = {{"role", message.role}, {"content", message.content.size()}};
    parts.push_back(message.content);
    if (message.reasoning) {
      entry["reasoning_content"] = message.reasoning->size();
      parts.push_back(*message.reasoning);
    }
    list.push_back(std::move(entry));
  }
  for (const Rendering& rendering : renderings) {
    wanted.push_back(Json::array({rendering.messages, rendering.add_generation_prompt}));
  }
  const std::string line = Line({{"messages", std::move(list)},
                                 {"renderings", std::move(wanted)},
                                 {"variables", variables},
                                 {"deadline", absl::ToDoubleSeconds(deadline)}});
  parts[0] = line;
  return absl::StrJoin(parts, "");
}

// The texts are from another process, which runs code of others.
void RefuseInvalidUtf8(RenderedTexts* rendered) {
  const auto bad = std::find_if_not(rendered->texts.begin(), rendered->texts.end(), IsValidUtf8);
  if (bad == rendered->texts.end()) return;
  rendered->texts.erase(bad, rendered->texts.end());
  rendered->status =
      absl::InvalidArgumentError("its process answered with a text that is no UTF-8");
}

}  // namespace

TemplateRenderer::TemplateRenderer(std::string text, absl::Duration deadline)
    : text_(std::move(text)), deadline_(deadline) {}

TemplateRenderer::~TemplateRenderer() = default;

absl::StatusOr<std::unique_ptr<TemplateRenderer>> TemplateRenderer::Start(std::string text,
                                                                          absl::Duration deadline) {
  std::unique_ptr<TemplateRenderer> renderer(new TemplateRenderer(std::move(text), deadline));
  absl::MutexLock lock(&renderer->mutex_);
  RETURN_IF_ERROR(renderer->StartChild());
  return renderer;
}

absl::Status TemplateRenderer::StartChild() const {
  ASSIGN_OR_RETURN(child_, TemplateProcess::Start());
  const Json request = {{"template", text_}, {"deadline", absl::ToDoubleSeconds(deadline_)}};
  const absl::StatusOr<TemplateProcess::Answer> answer = child_->Exchange(Line(request), deadline_);
  const absl::Status status =
      answer.ok() ? answer->Error() : absl::InvalidArgumentError(answer.status().message());
  if (!status.ok()) child_.reset();
  return status;
}

void TemplateRenderer::Keep(const std::string& request, const std::string& text) const {
  const size_t bytes = request.size() + text.size();
  if (bytes > kMaxKeptBytes / 4) return;
  if (kept_bytes_ + bytes > kMaxKeptBytes) {
    kept_.clear();
    kept_bytes_ = 0;
  }
  kept_bytes_ += bytes;
  kept_.emplace(request, text);
}

RenderedTexts TemplateRenderer::RenderInChild(const std::string& request, size_t count) const {
  RenderedTexts rendered;
  if (!child_) rendered.status = StartChild();
  for (size_t i = 0; i < count && rendered.status.ok(); ++i) {
    // The child writes each text when it is rendered, so that each has its own limit.
    absl::StatusOr<TemplateProcess::Answer> answer =
        child_->Exchange(i == 0 ? request : "", deadline_);
    if (!answer.ok()) {
      child_.reset();  // kills it
      rendered.status = answer.status();
    } else if (rendered.status = answer->Error(); rendered.status.ok()) {
      rendered.dated |= answer->Flag("dated");
      rendered.texts.push_back(std::move(answer->text));
    }
  }
  return rendered;
}

RenderedTexts TemplateRenderer::RenderRequest(const std::string& request, size_t count) const {
  RenderedTexts rendered = RenderInChild(request, count);
  // A child may have died since the last rendering (out of memory, an administrator); a template
  // that ends two children is itself the reason.
  if (absl::IsAborted(rendered.status)) rendered = RenderInChild(request, count);
  if (absl::IsAborted(rendered.status) || absl::IsDeadlineExceeded(rendered.status)) {
    rendered.status = absl::InvalidArgumentError(rendered.status.message());
  }
  return rendered;
}

absl::StatusOr<std::string> TemplateRenderer::Render(std::span<const ChatMessage> messages,
                                                     bool add_generation_prompt,
                                                     const Json& variables) const {
  const Rendering rendering = {messages.size(), add_generation_prompt};
  const std::string request = RequestOf(messages, {&rendering, 1}, variables, deadline_);
  absl::MutexLock lock(&mutex_);
  if (const auto kept = kept_.find(request); kept != kept_.end()) return kept->second;
  RenderedTexts rendered = RenderRequest(request, 1);
  RefuseInvalidUtf8(&rendered);
  RETURN_IF_ERROR(rendered.status);
  if (!rendered.dated) Keep(request, rendered.texts[0]);
  return std::move(rendered.texts[0]);
}

RenderedTexts TemplateRenderer::RenderAll(std::span<const ChatMessage> messages,
                                          std::span<const Rendering> renderings,
                                          const Json& variables) const {
  const std::string request = RequestOf(messages, renderings, variables, deadline_);
  RenderedTexts rendered;
  {
    absl::MutexLock lock(&mutex_);
    rendered = RenderRequest(request, renderings.size());
  }
  RefuseInvalidUtf8(&rendered);
  return rendered;
}

absl::StatusOr<std::vector<std::string>> TemplateRenderer::UnknownVariables(
    const std::vector<std::string>& names) const {
  const std::string request =
      Line({{"names", names}, {"deadline", absl::ToDoubleSeconds(deadline_)}});
  absl::MutexLock lock(&mutex_);
  if (!child_) RETURN_IF_ERROR(StartChild());
  const absl::StatusOr<TemplateProcess::Answer> answer = child_->Exchange(request, deadline_);
  if (!answer.ok()) {
    child_.reset();
    return absl::InvalidArgumentError(answer.status().message());
  }
  RETURN_IF_ERROR(answer->Error());
  const auto unknown = answer->head.find("unknown");
  if (unknown == answer->head.end() || !unknown->is_array()) {
    return absl::InvalidArgumentError("its process answered without a list of names");
  }
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (std::find(unknown->begin(), unknown->end(), name) != unknown->end()) found.push_back(name);
  }
  return found;
}

pid_t TemplateRenderer::pid() const {
  absl::MutexLock lock(&mutex_);
  return child_ ? child_->pid() : 0;
}

}  // namespace tritonrl
