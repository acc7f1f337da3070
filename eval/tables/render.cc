#include "eval/tables/render.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "eval/tables/layout.h"

namespace tritonrl {
namespace {

std::string EscapeMarkdown(const std::string& text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"},
                                    {"|", "\\|"},
                                    {"*", "\\*"},
                                    {"`", "\\`"},
                                    {"<", "&lt;"},
                                    {"&", "&amp;"},
                                    {"\n", " "},
                                    {"\r", " "}});
}

std::string EscapeLatex(const std::string& text) {
  const std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\textbackslash{}"},
                                                         {"{", "\\{"},
                                                         {"}", "\\}"},
                                                         {"&", "\\&"},
                                                         {"%", "\\%"},
                                                         {"$", "\\$"},
                                                         {"#", "\\#"},
                                                         {"_", "\\_"},
                                                         {"~", "\\textasciitilde{}"},
                                                         {"^", "\\textasciicircum{}"},
                                                         {"<", "\\textless{}"},
                                                         {">", "\\textgreater{}"},
                                                         {"|", "\\textbar{}"},
                                                         {"\n", " "},
                                                         {"\r", " "}});
  // Behind the \\ of the row before, these would be its argument.
  const bool argument = !escaped.empty() && (escaped[0] == '[' || escaped[0] == '*');
  return argument ? "{}" + escaped : escaped;
}

std::string EscapeCsv(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

std::string MarkdownLine(const std::vector<std::string>& texts, const std::vector<size_t>& widths) {
  std::string line = "|";
  for (size_t i = 0; i < texts.size(); ++i) {
    absl::StrAppend(&line, " ", texts[i], std::string(widths[i] - texts[i].size(), ' '), " |");
  }
  return line + "\n";
}

// Columns are padded to the longest text in bytes.
std::string MarkdownBlock(const TableBlock& block) {
  std::vector<std::vector<std::string>> lines = {block.header};
  lines.insert(lines.end(), block.rows.begin(), block.rows.end());
  std::vector<size_t> widths(block.header.size(), 3);
  for (std::vector<std::string>& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      line[i] = EscapeMarkdown(line[i]);
      widths[i] = std::max(widths[i], line[i].size());
    }
  }
  std::vector<std::string> rule;
  for (size_t width : widths) rule.push_back(std::string(width, '-'));
  std::string text = MarkdownLine(lines[0], widths) + MarkdownLine(rule, widths);
  for (size_t i = 1; i < lines.size(); ++i) text += MarkdownLine(lines[i], widths);
  return text;
}

std::string LatexLine(const std::vector<std::string>& texts) {
  return absl::StrJoin(texts, " & ",
                       [](std::string* out, const std::string& text) {
                         absl::StrAppend(out, EscapeLatex(text));
                       }) +
         " \\\\\n";
}

std::string LatexBlock(const TableBlock& block) {
  const size_t columns = block.header.size();
  std::string text =
      absl::StrCat("\\begin{adjustbox}{max width=\\textwidth}\n\\begin{tabular}{",
                   std::string(block.labels, 'l'), std::string(columns - block.labels, 'r'),
                   "}\n\\toprule\n\\multicolumn{", columns, "}{l}{", EscapeLatex(block.heading),
                   "} \\\\\n\\midrule\n", LatexLine(block.header), "\\midrule\n");
  for (const std::vector<std::string>& row : block.rows) text += LatexLine(row);
  return text + "\\bottomrule\n\\end{tabular}\n\\end{adjustbox}\n";
}

// A value of the CSV file, in percent if the metric is a share.
std::string Number(std::optional<double> value, const MetricText& metric, int decimals) {
  if (!value.has_value()) return "";
  return absl::StrFormat("%.*f", decimals, metric.share ? 100 * *value : *value);
}

std::vector<std::string> CsvCells(const TableData& table, const TableRow& row, size_t index) {
  const Column& column = table.columns[index];
  const Cell& cell = row.cells[index];
  const MetricText& metric = *FindMetricText(column.metric);
  const bool has = cell.ours.has_value();
  const Interval ours = cell.ours.value_or(Interval());
  std::vector<std::string> cells = {table.name,
                                    absl::StrJoin(row.labels, ", "),
                                    absl::StrCat(column.level),
                                    absl::StrCat(column.k),
                                    column.metric,
                                    column.variant};
  cells.push_back(has ? Number(ours.value, metric, 4) : "");
  for (double end : {ours.low, ours.high}) {
    cells.push_back(has && ours.bounded() ? Number(end, metric, 4) : "");
  }
  cells.push_back(Number(cell.published, metric, metric.share ? 1 : 2));
  cells.push_back(!has ? "" : cell.modelled ? "yes" : "no");
  cells.push_back(cell.missing);
  // Without a value there is no stamp; the columns stay.
  const Stamp stamp = has ? cell.stamp : Stamp();
  for (const std::string& text : {stamp.commit, stamp.config_hash, stamp.gpu, stamp.tasks_version,
                                  stamp.tasks_digest, absl::StrJoin(stamp.seeds, " "),
                                  absl::StrJoin(stamp.versions, " ", absl::PairFormatter("="))}) {
    cells.push_back(text);
  }
  return cells;
}

}  // namespace

std::string RenderMarkdown(const TableData& table) {
  const TableLayout layout = LayOut(table);
  std::string text = absl::StrCat("# ", EscapeMarkdown(table.title), "\n");
  if (!table.caption.empty()) absl::StrAppend(&text, "\n", EscapeMarkdown(table.caption), "\n");
  for (const TableBlock& block : layout.blocks) {
    absl::StrAppend(&text, "\n## ", EscapeMarkdown(block.heading), "\n\n", MarkdownBlock(block));
  }
  if (!layout.notes.empty()) text += "\n";
  for (const std::string& note : layout.notes) {
    absl::StrAppend(&text, "- ", EscapeMarkdown(note), "\n");
  }
  return text;
}

std::string RenderLatex(const TableData& table) {
  const TableLayout layout = LayOut(table);
  std::string text =
      absl::StrCat("\\begin{table*}[t]\n\\centering\\small\n\\caption{", EscapeLatex(table.title),
                   table.caption.empty() ? "" : ". " + EscapeLatex(table.caption),
                   "}\n\\label{tab:", table.name, "}\n");
  for (const TableBlock& block : layout.blocks) {
    absl::StrAppend(&text, LatexBlock(block), "\n\\medskip\n");
  }
  for (const std::string& note : layout.notes) {
    absl::StrAppend(&text, "\\par\\footnotesize ", EscapeLatex(note), "\n");
  }
  return text + "\\end{table*}\n";
}

std::string RenderCsv(const TableData& table) {
  std::string text =
      "table,row,level,k,metric,variant,value,low,high,published,modelled,missing,commit,"
      "configuration,gpu,tasks_version,tasks_digest,seeds,versions\n";
  for (const TableRow& row : table.rows) {
    for (size_t i = 0; i < table.columns.size(); ++i) {
      std::vector<std::string> cells = CsvCells(table, row, i);
      for (std::string& cell : cells) cell = EscapeCsv(cell);
      absl::StrAppend(&text, absl::StrJoin(cells, ","), "\n");
    }
  }
  return text;
}

}  // namespace tritonrl
