#include "tools/kernelbook/rows.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/status.h"
#include "tools/kernelbook/parquet_reader.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxLineBytes = 64 << 20;
constexpr size_t kMaxCode = 1 << 20;  // as tasks/loader.cc takes it
constexpr size_t kMaxText = 200;      // of a field that is shown

// The columns that are read; the first two are needed.
const std::vector<std::string>& Columns() {
  static const auto* columns =
      new std::vector<std::string>{"python_code", "entry_point", "uuid",        "repo_name",
                                   "repo_link",   "sha",         "module_name", "licenses"};
  return *columns;
}
constexpr size_t kNeeded = 2;

// A field as text on one line: texts as they are, numbers in decimal, the items of a list joined.
std::string Text(const Json& row, const char* name) {
  const auto found = row.find(name);
  if (found == row.end()) return "";
  std::string text;
  if (found->is_string()) {
    text = found->get<std::string>();
  } else if (found->is_number_float()) {
    text = absl::StrFormat("%.0f", found->get<double>());  // whole numbers of a column with nulls
  } else if (found->is_number()) {
    text = found->dump();
  } else if (found->is_array()) {
    std::vector<std::string> items;
    for (const Json& item : *found) {
      if (item.is_string()) items.push_back(item.get<std::string>());
    }
    text = absl::StrJoin(items, ", ");
  }
  for (char& c : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = ' ';
  }
  return text.substr(0, kMaxText);
}

bool IsIdentifier(const std::string& name) {
  return !name.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '_' || c >= 0x80;
         });
}

// Takes rows as JSON and sorts out those that cannot be used.
class RowCollector {
 public:
  RowCollector(std::string path, int64_t limit) : path_(std::move(path)), limit_(limit) {}

  bool full() const { return limit_ > 0 && count_ >= limit_; }

  // `where` names the row, such as "line 7".
  void Add(const Json& json, const std::string& where) {
    KernelBookRow row{.number = ++count_};
    if (!json.is_object()) return Bad(std::move(row), where, "is no JSON object");
    row.uuid = Text(json, "uuid");
    row.entry_point = Text(json, "entry_point");
    row.repo_name = Text(json, "repo_name");
    row.repo_link = Text(json, "repo_link");
    row.sha = Text(json, "sha");
    row.module_name = Text(json, "module_name");
    row.licenses = Text(json, "licenses");
    if (names_.empty()) {
      for (const auto& [name, value] : json.items()) names_.push_back(name);
    }
    for (size_t i = 0; i < kNeeded; ++i) {
      const auto found = json.find(Columns()[i]);
      if (found == json.end()) return Bad(std::move(row), where, "has no " + Columns()[i]);
      seen_[i] = true;
      if (!found->is_string() || found->get_ref<const std::string&>().empty()) {
        return Bad(std::move(row), where, "has a " + Columns()[i] + " that is no text or empty");
      }
    }
    row.python_code = json["python_code"].get<std::string>();
    if (row.python_code.size() > kMaxCode) {
      return Bad(std::move(row), where,
                 absl::StrCat("has a python_code of more than ", kMaxCode, " bytes"));
    }
    if (!IsIdentifier(row.entry_point)) {
      return Bad(std::move(row), where, "has an entry_point that is no name of a class");
    }
    result_.rows.push_back(std::move(row));
  }

  void AddUnreadable(const std::string& where, const std::string& why) {
    Bad(KernelBookRow{.number = ++count_}, where, why);
  }

  // Refuses a file whose columns lack a needed one.
  absl::Status CheckColumns(const std::vector<std::string>& names) const {
    for (size_t i = 0; i < kNeeded; ++i) {
      if (std::find(names.begin(), names.end(), Columns()[i]) == names.end()) {
        return NoColumn(Columns()[i], names);
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<KernelBookRows> Finish() {
    if (count_ == 0) {
      return absl::InvalidArgumentError(absl::StrCat(path_, " holds no row"));
    }
    for (size_t i = 0; i < kNeeded; ++i) {
      if (!names_.empty() && !seen_[i]) return NoColumn(Columns()[i], names_);
    }
    return std::move(result_);
  }

 private:
  void Bad(KernelBookRow row, const std::string& where, const std::string& why) {
    result_.bad.push_back({std::move(row), absl::StrCat(path_, ", ", where, " ", why)});
  }

  absl::Status NoColumn(const std::string& name, const std::vector<std::string>& names) const {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, " has no column ", name, "; its columns are ",
                     absl::StrJoin(names, ", ").substr(0, kMaxText),
                     ". A KernelBook file has at least python_code and entry_point."));
  }

  const std::string path_;
  const int64_t limit_;
  int64_t count_ = 0;
  std::vector<std::string> names_;  // of the first object
  bool seen_[kNeeded] = {false, false};
  KernelBookRows result_;
};

absl::Status ReadLines(const std::string& path, RowCollector* rows) {
  ASSIGN_OR_RETURN(const std::unique_ptr<LineReader> reader, LineReader::Open(path, kMaxLineBytes));
  while (!rows->full()) {
    ASSIGN_OR_RETURN(const std::optional<Line> line, reader->Next());
    if (!line.has_value()) break;
    const std::string where = absl::StrCat("line ", line->number);
    if (line->too_long) {
      rows->AddUnreadable(where, absl::StrCat("is longer than ", kMaxLineBytes, " bytes"));
      continue;
    }
    if (absl::StripAsciiWhitespace(line->text).empty()) continue;
    const Json json = Json::parse(line->text, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) {
      rows->AddUnreadable(
          where, line->complete ? "is no valid JSON" : "is no valid JSON: the file ends within it");
    } else {
      rows->Add(json, where);
    }
  }
  return absl::OkStatus();
}

// Thrown out of nlohmann's parser to end it early.
struct Enough {};

// One array whose elements are handed on and forgotten one by one.
absl::Status ReadArray(const std::string& path, RowCollector* rows) {
  std::ifstream file(path, std::ios::binary);
  int64_t element = 0;
  const auto keep = [&](int depth, Json::parse_event_t event, Json& parsed) {
    const bool ends = event == Json::parse_event_t::object_end ||
                      event == Json::parse_event_t::array_end ||
                      event == Json::parse_event_t::value;
    if (depth != 1 || !ends) return true;
    rows->Add(parsed, absl::StrCat("row ", ++element));
    if (rows->full()) throw Enough();
    return false;
  };
  try {
    const Json emptied = Json::parse(file, keep);
    if (!emptied.is_array()) return absl::InvalidArgumentError(absl::StrCat(path, " is no array"));
  } catch (const Enough&) {
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is no valid JSON array: after row ", element, ": ", error.what()));
  }
  return absl::OkStatus();
}

absl::Status ReadParquetRows(const std::string& path, RowCollector* rows) {
  int64_t number = 0;
  const absl::Status status = ReadParquet(
      path, Columns(),
      [&](const std::vector<std::string>& names) { return rows->CheckColumns(names); },
      [&](const std::string& text) {
        rows->Add(Json::parse(text, nullptr, /*allow_exceptions=*/false),
                  absl::StrCat("row ", ++number));
        return rows->full() ? absl::CancelledError() : absl::OkStatus();
      });
  return absl::IsCancelled(status) ? absl::OkStatus() : status;
}

// The first bytes of the file, without leading white space of a text.
absl::StatusOr<std::string> Beginning(const std::string& path) {
  if (!FileExists(path)) return absl::NotFoundError(absl::StrCat(path, " does not exist"));
  if (DirectoryExists(path)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is a folder; give one file of KernelBook"));
  }
  std::ifstream file(path, std::ios::binary);
  std::string head(4096, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(file.gcount()));
  return std::string(absl::StripLeadingAsciiWhitespace(head));
}

}  // namespace

absl::StatusOr<KernelBookRows> ReadKernelBook(const std::string& path, int64_t limit) {
  ASSIGN_OR_RETURN(const std::string head, Beginning(path));
  RowCollector rows(path, limit);
  if (absl::StartsWith(head, "PAR1")) {
    RETURN_IF_ERROR(ReadParquetRows(path, &rows));
  } else if (absl::StartsWith(head, "version https://git-lfs")) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " is a pointer of Git LFS, not the file itself; fetch it with git lfs pull"));
  } else if (absl::EndsWith(path, ".parquet")) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is no parquet file: it does not begin with PAR1"));
  } else if (absl::StartsWith(head, "[")) {
    RETURN_IF_ERROR(ReadArray(path, &rows));
  } else if (absl::StartsWith(head, "{")) {
    RETURN_IF_ERROR(ReadLines(path, &rows));
  } else if (head.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is empty"));
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is neither parquet, nor a JSON array, nor JSON lines"));
  }
  return rows.Finish();
}

}  // namespace tritonrl
