#include "verify/cli/html_case.h"

#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "verify/cli/html_page.h"

namespace tritonrl {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kLayers[] = {"syntax",  "functionality", "compiled",
                                   "correct", "judge",         "speedup"};

// Digits as a person reads them: 0.000012 -> "1.2e-05".
std::string Number(const Json& value) {
  return value.is_number() ? absl::StrFormat("%.4g", value.get<double>()) : "";
}

int LineOf(const Json& evidence) {
  const auto line = evidence.find("line");
  return line != evidence.end() && line->is_number_integer() ? line->get<int>() : 0;
}

// Calls visit(layer's name, layer) for those that the line holds, in order.
template <typename Visit>
void ForEachLayer(const Json& line, Visit visit) {
  const auto layers = line.find("layers");
  if (layers == line.end() || !layers->is_object()) return;
  for (const char* name : kLayers) {
    const auto layer = layers->find(name);
    if (layer != layers->end() && layer->is_object()) visit(name, *layer);
  }
}

template <typename Visit>
void ForEachEvidence(const Json& layer, Visit visit) {
  const auto evidence = layer.find("evidence");
  if (evidence == layer.end() || !evidence->is_array()) return;
  for (const Json& piece : *evidence) {
    if (piece.is_object()) visit(piece);
  }
}

std::string EvidenceItem(const Json& piece) {
  std::string item = "<li>";
  if (LineOf(piece) > 0) absl::StrAppend(&item, "line ", LineOf(piece), ": ");
  absl::StrAppend(&item, EscapeHtml(JsonText(piece, "text")));
  std::vector<std::string> facts;
  for (const char* name : {"rule", "name", "kernel"}) {
    const std::string text = JsonText(piece, name);
    if (!text.empty()) facts.push_back(EscapeHtml(text));
  }
  const auto value = piece.find("value");
  if (value != piece.end()) facts.push_back(Number(*value));
  if (!facts.empty()) absl::StrAppend(&item, " <small>", absl::StrJoin(facts, ", "), "</small>");
  return item + "</li>";
}

std::string Layers(const Json& line) {
  std::string html;
  ForEachLayer(line, [&html](const char* name, const Json& layer) {
    const std::string outcome = JsonText(layer, "outcome");
    const bool passive = outcome == "not_reached" || outcome == "off";
    absl::StrAppend(&html, "<dt class=",
                    outcome == "ok" ? "ok"
                    : passive       ? "off"
                                    : "bad",
                    ">", name, "</dt><dd>", EscapeHtml(outcome));
    std::string items;
    ForEachEvidence(layer, [&items](const Json& piece) { items += EvidenceItem(piece); });
    if (!items.empty()) absl::StrAppend(&html, "<ul>", items, "</ul>");
    absl::StrAppend(&html, "</dd>");
  });
  return html.empty() ? "" : absl::StrCat("<dl>", html, "</dl>");
}

std::string Figures(const Json& line) {
  std::vector<std::string> figures;
  for (const char* name : {"backend", "task"}) {
    const std::string text = JsonText(line, name);
    if (!text.empty()) figures.push_back(absl::StrCat(name, " ", EscapeHtml(text)));
  }
  const auto worker = line.find("worker");
  if (worker != line.end() && worker->is_object()) {
    const std::string device = JsonText(*worker, "device");
    if (!device.empty()) figures.push_back(EscapeHtml(device));
    for (const char* name : {"server", "gpu"}) {
      const std::string text = JsonText(*worker, name);
      if (!text.empty()) figures.push_back(absl::StrCat(name, " ", EscapeHtml(text)));
    }
    for (const char* name : {"wall_seconds", "cpu_seconds", "queue_seconds", "peak_rss_bytes"}) {
      const auto value = worker->find(name);
      if (value != worker->end()) figures.push_back(absl::StrCat(name, " ", Number(*value)));
    }
  }
  return figures.empty() ? ""
                         : absl::StrCat("<p class=figures>", absl::StrJoin(figures, " | "), "</p>");
}

// Line numbers in front; lines that evidence names are marked.
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

std::string Speedup(const Json& line) {
  const auto speedup = line.find("speedup");
  if (speedup == line.end() || !speedup->is_number()) return "";
  const auto modelled = line.find("modelled");
  const bool model = modelled != line.end() && modelled->is_boolean() && modelled->get<bool>();
  std::string text = absl::StrFormat("%.2fx%s", speedup->get<double>(), model ? " (modelled)" : "");
  const auto low = line.find("speedup_low"), high = line.find("speedup_high");
  if (low != line.end() && low->is_number() && high != line.end() && high->is_number()) {
    absl::StrAppendFormat(&text, " [%.3f, %.3f]", low->get<double>(), high->get<double>());
  }
  return text;
}

}  // namespace

std::string JsonText(const Json& json, const char* name) {
  const auto member = json.find(name);
  return member != json.end() && member->is_string() ? member->get<std::string>() : "";
}

std::string HtmlCase(const Json& line, const std::string& reference_source,
                     const std::string& candidate_source) {
  const std::string outcome = EscapeHtml(JsonText(line, "outcome"));
  std::string layer = EscapeHtml(JsonText(line, "failed_layer"));
  if (layer == "none") layer = "";
  const auto id = line.find("id");
  std::string name = JsonText(line, "id");
  if (name.empty() && id != line.end() && !id->is_null()) {
    name = id->dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  if (name.empty()) name = "(no id)";
  std::set<int> marked;
  ForEachLayer(line, [&marked](const char*, const Json& l) {
    ForEachEvidence(l, [&marked](const Json& piece) { marked.insert(LineOf(piece)); });
  });
  const char* kind = outcome == "correct" ? "ok" : outcome == "inconclusive" ? "off" : "bad";
  return absl::StrCat("<tr data-key=\"", layer, "/", outcome, "\"><td>", EscapeHtml(name),
                      "</td><td class=", kind, ">", outcome, "</td><td>", layer, "</td><td>",
                      Speedup(line), "</td><td><details><summary>",
                      EscapeHtml(JsonText(line, "reason")), "</summary>", Layers(line),
                      Figures(line), Source("Candidate", candidate_source, marked),
                      Source("Reference", reference_source, {}), "</details></td></tr>\n");
}

}  // namespace tritonrl
