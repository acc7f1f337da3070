#include "verify/cli/html_case.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "exec/device_backend.h"
#include "verify/cli/html_page.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {
namespace {

// Four significant digits: 0.000012 -> "1.2e-05".
std::string Number(double value) { return absl::StrFormat("%.4g", value); }

std::string EvidenceItem(const Evidence& evidence) {
  std::string item = "<li>";
  if (evidence.line() > 0) absl::StrAppend(&item, "line ", evidence.line(), ": ");
  absl::StrAppend(&item, EscapeHtml(evidence.text()));
  std::vector<std::string> facts;
  for (const std::string& text : {evidence.rule(), evidence.name(), evidence.kernel()}) {
    if (!text.empty()) facts.push_back(EscapeHtml(text));
  }
  if (evidence.value() != 0) facts.push_back(Number(evidence.value()));
  if (!facts.empty()) absl::StrAppend(&item, " <small>", absl::StrJoin(facts, ", "), "</small>");
  return item + "</li>";
}

std::string Layers(const Verdict& verdict) {
  std::string html;
  for (const LayerResult& layer : verdict.layers()) {
    absl::StrAppend(&html, "<dt class=", layer.reason() == Outcome::OK ? "ok" : "bad", ">",
                    LayerName(layer.layer()), "</dt><dd>", ReasonName(layer.reason()));
    std::string items;
    for (const Evidence& evidence : layer.evidence()) items += EvidenceItem(evidence);
    if (!items.empty()) absl::StrAppend(&html, "<ul>", items, "</ul>");
    absl::StrAppend(&html, "</dd>");
  }
  return html.empty() ? "" : absl::StrCat("<dl>", html, "</dl>");
}

std::string Figures(const Verdict& verdict) {
  const WorkerStats& worker = verdict.worker();
  std::vector<std::string> figures;
  for (const auto& [name, text] :
       std::vector<std::pair<std::string, std::string>>{{"backend ", verdict.backend()},
                                                        {"task ", verdict.task_id()},
                                                        {"", worker.device()},
                                                        {"server ", worker.server()},
                                                        {"gpu ", worker.gpu()}}) {
    if (!text.empty()) figures.push_back(absl::StrCat(name, EscapeHtml(text)));
  }
  if (verdict.has_worker()) {
    figures.push_back(absl::StrFormat(
        "wall_seconds %.4g | cpu_seconds %.4g | queue_seconds %.4g | peak_rss_bytes %d",
        worker.wall_seconds(), worker.cpu_seconds(), worker.queue_seconds(),
        worker.peak_rss_bytes()));
  }
  return figures.empty() ? ""
                         : absl::StrCat("<p class=figures>", absl::StrJoin(figures, " | "), "</p>");
}

// Returns the source with line numbers; lines in `marked`, which evidence names, are highlighted.
std::string Source(const std::string& title, const std::string& source,
                   const std::set<int>& marked) {
  if (source.empty()) return "";
  std::string html = absl::StrCat("<h4>", title, "</h4><pre>");
  int number = 0;
  for (const absl::string_view text : absl::StrSplit(source, '\n')) {
    ++number;
    const std::string line = absl::StrFormat("%4d  ", number) + EscapeHtml(text);
    const bool mark = marked.count(number) > 0;
    absl::StrAppend(&html, mark ? "<mark>" : "", line, mark ? "</mark>" : "", "\n");
  }
  return html + "</pre>";
}

std::string SpeedupText(const Verdict& verdict) {
  if (!IsCorrect(verdict) || !verdict.has_speedup()) return "";
  const Speedup& speedup = verdict.speedup();
  std::string text =
      absl::StrFormat("%.2fx%s", speedup.speedup(), speedup.modelled() ? " (modelled)" : "");
  if (speedup.has_timing() && !speedup.mean_of_calls()) {
    absl::StrAppendFormat(&text, " [%.3f, %.3f]", speedup.timing().speedup_low(),
                          speedup.timing().speedup_high());
  }
  return text;
}

}  // namespace

std::string HtmlCase(const std::string& id, const BatchLine& line,
                     const std::string& reference_source, const std::string& candidate_source) {
  const Verdict& verdict = line.verdict;
  std::set<int> marked;
  for (const LayerResult& layer : verdict.layers()) {
    for (const Evidence& evidence : layer.evidence()) marked.insert(evidence.line());
  }
  const Outcome::Status status = verdict.outcome().status();
  const bool failed = status == Outcome::STATUS_CANDIDATE_FAILED || !line.input_error.empty();
  const char* kind = failed ? "bad" : status == Outcome::STATUS_OK ? "ok" : "off";
  const std::string outcome = OutcomeLabel(line), layer = FailedLayerLabel(line);
  const std::string& reason =
      line.input_error.empty() ? verdict.outcome().message() : line.input_error;
  return absl::StrCat(
      "<tr data-key=\"", layer, "/", outcome, "\"><td>", id.empty() ? "(no id)" : EscapeHtml(id),
      "</td><td class=", kind, ">", outcome, "</td><td>", layer, "</td><td>", SpeedupText(verdict),
      "</td><td><details><summary>", EscapeHtml(reason), "</summary>", Layers(verdict),
      Figures(verdict), Source("Candidate", candidate_source, marked),
      Source("Reference", reference_source, {}), "</details></td></tr>\n");
}

}  // namespace tritonrl
