#include "verify/cli/html_page.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/jsonl.h"
#include "base/status.h"
#include "base/utf8.h"
#include "verify/cli/batch.h"
#include "verify/cli/case_reader.h"
#include "verify/cli/html_case.h"

namespace tritonrl {
namespace {

constexpr int64_t kMaxVerdictBytes = 16 << 20;

constexpr char kStyle[] = R"css(
body { font: 15px/1.4 system-ui, sans-serif; margin: 1.5em; color: #222; background: #fff; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .25em .6em; border-bottom: 1px solid #ddd; }
th { position: sticky; top: 0; background: #f4f4f4; }
.totals { width: auto; margin-bottom: 1em; } .totals td:last-child { text-align: right; }
.ok { color: #17692b; } .bad { color: #b3261e; } .off { color: #777; }
summary { cursor: pointer; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1em 1em; } dd { margin: 0; }
ul { margin: 0; padding-left: 1.2em; } small, .figures { color: #666; }
pre { background: #f7f7f7; padding: .6em; overflow: auto; max-height: 40em; }
mark { background: #ffe08a; display: inline-block; min-width: 100%; }
#filter { margin-bottom: .6em; } input { min-width: 22em; }
)css";

// Hides the rows whose text or key does not match the filter. The script never makes HTML from
// text.
constexpr char kScript[] = R"js(
const rows = Array.from(document.querySelectorAll("#cases tbody tr"));
const words = document.getElementById("words"), keys = document.getElementById("keys");
const count = document.getElementById("count");
const texts = rows.map(r => (r.cells[0].textContent + " " +
  r.querySelector("summary").textContent).toLowerCase());
function apply() {
  const wanted = words.value.toLowerCase(), key = keys.value;
  let shown = 0;
  rows.forEach((row, i) => {
    const fits = texts[i].includes(wanted) && (key === "" || row.dataset.key === key);
    row.hidden = !fits;
    shown += fits;
  });
  count.textContent = shown + " of " + rows.length;
}
words.addEventListener("input", apply);
keys.addEventListener("change", apply);
apply();
)js";

// Returns 'sha256-...', by which a content security policy identifies an inline script or style.
std::string PolicyHash(absl::string_view text) {
  return absl::StrCat("'sha256-", absl::Base64Escape(absl::HexStringToBytes(Sha256Hex(text))), "'");
}

std::string Head(const std::string& title) {
  return absl::StrCat(
      "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n"
      "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; base-uri 'none'; "
      "form-action 'none'; style-src ",
      PolicyHash(kStyle), "; script-src ", PolicyHash(kScript), "\">\n<title>", EscapeHtml(title),
      "</title>\n<style>", kStyle, "</style></head>\n<body><h1>", EscapeHtml(title), "</h1>\n");
}

std::string Totals(const BatchTotals& totals, int64_t not_checked) {
  std::string html = absl::StrCat("<p>", totals.all(), " cases: <span class=ok>", totals.correct,
                                  " correct</span>, <span class=bad>", totals.failed,
                                  " failed</span>, ", totals.infra_errors,
                                  " infrastructure errors, ", totals.input_errors, " input errors");
  if (not_checked > 0) absl::StrAppend(&html, ", ", not_checked, " not checked");
  absl::StrAppend(&html,
                  ".</p>\n<table class=totals><tr><th>layer</th><th>outcome</th><th>cases"
                  "</th></tr>\n");
  std::string choices = "<option value=\"\">all</option>";
  for (const auto& [key, count] : totals.by_layer) {
    const std::string layer = EscapeHtml(key.first), outcome = EscapeHtml(key.second);
    absl::StrAppend(&html, "<tr><td>", layer.empty() ? "-" : layer, "</td><td>", outcome,
                    "</td><td>", count, "</td></tr>\n");
    absl::StrAppend(&choices, "<option value=\"", layer, "/", outcome, "\">", layer, " ", outcome,
                    "</option>");
  }
  absl::StrAppend(&html,
                  "</table>\n<div id=filter><input id=words placeholder=\"id or reason\"> "
                  "<select id=keys>",
                  choices, "</select> <span id=count></span></div>\n");
  return html;
}

constexpr char kTableBegin[] =
    "<table id=cases><thead><tr><th>id</th><th>outcome</th><th>failed layer</th><th>speedup</th>"
    "<th>reason</th></tr></thead><tbody>\n";

// Writes a temporary file beside the page and renames it at the end, so that a reader never sees an
// incomplete page.
class PageFile {
 public:
  explicit PageFile(std::string path)
      : path_(std::move(path)), temporary_(absl::StrCat(path_, ".tmp", getpid())) {}
  ~PageFile() {
    if (file_ != nullptr) std::fclose(file_);
    if (!done_) unlink(temporary_.c_str());
  }
  absl::Status Open() {
    file_ = std::fopen(temporary_.c_str(), "we");
    return file_ == nullptr ? ErrnoStatus(errno, "write", path_) : absl::OkStatus();
  }
  absl::Status Write(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), file_) == text.size()) return absl::OkStatus();
    return ErrnoStatus(errno, "write", path_);
  }
  absl::Status Finish() {
    RETURN_IF_ERROR(
        Write(absl::StrCat("</tbody></table>\n<script>", kScript, "</script></body></html>\n")));
    const int failed = std::fclose(file_);
    file_ = nullptr;
    if (failed != 0) return ErrnoStatus(errno, "write", path_);
    RETURN_IF_ERROR(RenameFile(temporary_, path_));
    done_ = true;
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  const std::string temporary_;
  std::FILE* file_ = nullptr;
  bool done_ = false;
};

// The offset and size of each line of the output.
class OutputIndex {
 public:
  absl::Status Load(const std::string& path) {
    path_ = path;
    ASSIGN_OR_RETURN(std::unique_ptr<LineReader> lines, LineReader::Open(path, kMaxVerdictBytes));
    while (true) {
      ASSIGN_OR_RETURN(std::optional<Line> line, lines->Next());
      if (!line.has_value() || !line->complete) break;
      const absl::StatusOr<BatchLine> parsed = ParseBatchLine(line->text);
      if (!parsed.ok()) continue;
      places_[Hash64(LineKey(*parsed))] = {line->offset, static_cast<int64_t>(line->text.size())};
    }
    fd_.reset(std::fopen(path.c_str(), "re"));
    return fd_ == nullptr ? ErrnoStatus(errno, "read", path) : absl::OkStatus();
  }

  // Returns the case's line, or nullopt if it has none.
  absl::StatusOr<std::optional<BatchLine>> Find(const Case& c) {
    const auto place = places_.find(Hash64(LineKey(c)));
    if (place == places_.end()) return std::nullopt;
    std::string text(place->second.second, '\0');
    const ssize_t n = pread(fileno(fd_.get()), text.data(), text.size(), place->second.first);
    if (n < 0) return ErrnoStatus(errno, "read", path_);
    absl::StatusOr<BatchLine> line = ParseBatchLine(text.substr(0, n));
    if (!line.ok()) return absl::DataLossError(path_ + " changed while it was read");
    return *std::move(line);
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> fd_;
  absl::flat_hash_map<uint64_t, std::pair<int64_t, int64_t>> places_;  // offset, size
};

// Calls visit(case, line) for each case that has a line in the output; returns the number of cases
// that have none.
template <typename Visit>
absl::StatusOr<int64_t> ForEachChecked(const std::string& in, const CaseOptions& cases,
                                       OutputIndex* index, Visit visit) {
  ASSIGN_OR_RETURN(std::unique_ptr<CaseReader> reader, CaseReader::Open(in, cases));
  int64_t missing = 0;
  while (true) {
    ASSIGN_OR_RETURN(std::optional<Case> c, reader->Next());
    if (!c.has_value()) return missing;
    ASSIGN_OR_RETURN(const std::optional<BatchLine> line, index->Find(*c));
    if (line.has_value()) {
      RETURN_IF_ERROR(visit(*c, *line));
    } else {
      ++missing;
    }
  }
}

// True for control characters, and for characters that are invisible or reorder their neighbours.
bool IsInvisible(char32_t c) {
  const auto between = [c](char32_t low, char32_t high) { return c >= low && c <= high; };
  return (c < 0x20 && c != '\n' && c != '\t') || between(0x7F, 0x9F) || between(0x200B, 0x200F) ||
         between(0x202A, 0x202E) || between(0x2066, 0x2069) || c == 0xFEFF;
}

}  // namespace

std::string EscapeHtml(absl::string_view text) {
  std::string html;
  html.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const Utf8Char next = DecodeUtf8Char(text);
    switch (next.code_point) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        if (IsInvisible(next.code_point)) {
          absl::StrAppendFormat(&html, "\\u%04x", static_cast<uint32_t>(next.code_point));
        } else {
          AppendUtf8(next.code_point, &html);  // U+FFFD for an ill-formed part
        }
    }
    text.remove_prefix(next.length);
  }
  return html;
}

absl::Status WriteBatchPage(const std::string& in, const std::string& out, const std::string& page,
                            int64_t max_cases, const CaseOptions& cases) {
  OutputIndex index;
  RETURN_IF_ERROR(index.Load(out));
  // Reads the input twice, because the totals precede the table.
  BatchTotals totals;
  ASSIGN_OR_RETURN(const int64_t missing,
                   ForEachChecked(in, cases, &index, [&totals](const Case&, const BatchLine& line) {
                     totals.Count(line);
                     return absl::OkStatus();
                   }));
  PageFile file(page);
  RETURN_IF_ERROR(file.Open());
  RETURN_IF_ERROR(file.Write(
      absl::StrCat(Head(absl::StrCat("Verdicts on ", BaseName(in))), Totals(totals, missing))));
  if (totals.all() > max_cases) {
    RETURN_IF_ERROR(
        file.Write(absl::StrCat("<p>The table holds the first ", max_cases, " of them.</p>\n")));
  }
  RETURN_IF_ERROR(file.Write(kTableBegin));
  int64_t shown = 0;
  const auto written = ForEachChecked(in, cases, &index, [&](const Case& c, const BatchLine& line) {
    if (++shown > max_cases) return absl::OkStatus();
    return file.Write(HtmlCase(c.id, line, c.reference_source, c.candidate_source));
  });
  RETURN_IF_ERROR(written.status());
  return file.Finish();
}

absl::Status WritePairPage(const Verdict& verdict, const std::string& reference_source,
                           const std::string& candidate_source, const std::string& page) {
  BatchLine line;
  line.verdict = verdict;
  BatchTotals totals;
  totals.Count(line);
  PageFile file(page);
  RETURN_IF_ERROR(file.Open());
  RETURN_IF_ERROR(file.Write(
      absl::StrCat(Head("Verdict on " + verdict.key()), Totals(totals, 0), kTableBegin)));
  RETURN_IF_ERROR(file.Write(HtmlCase(verdict.key(), line, reference_source, candidate_source)));
  return file.Finish();
}

}  // namespace tritonrl
