#include "tools/kernelbook/rows.h"

#include <algorithm>
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
#include "base/records/lenient_json.h"
#include "base/records/record_reader.h"
#include "base/status.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;

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

  // `where` names the file and the row.
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
      return absl::InvalidArgumentError(absl::StrCat(path_, " is empty: it holds no row"));
    }
    if (names_.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, " is neither Parquet, nor a JSON array, nor JSON Lines of objects"));
    }
    for (size_t i = 0; i < kNeeded; ++i) {
      if (!names_.empty() && !seen_[i]) return NoColumn(Columns()[i], names_);
    }
    return std::move(result_);
  }

 private:
  void Bad(KernelBookRow row, const std::string& where, const std::string& why) {
    result_.bad.push_back({std::move(row), absl::StrCat(where, " ", why)});
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

// Passes on the rows of the file; a line that is not JSON becomes a bad row.
absl::Status ReadRows(RecordReader* reader, RowCollector* rows) {
  while (!rows->full()) {
    ASSIGN_OR_RETURN(const std::optional<Record> record, reader->Next());
    if (!record.has_value()) break;
    const absl::StatusOr<LenientJson> parsed = ParseLenientJson(record->text);
    if (parsed.ok()) {
      rows->Add(parsed->json, reader->Where(*record));
    } else {
      rows->AddUnreadable(
          reader->Where(*record),
          record->complete ? "is no valid JSON" : "is no valid JSON: the file ends within it");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<KernelBookRows> ReadKernelBook(const std::string& path, int64_t limit) {
  if (DirectoryExists(path)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is a folder; give one file of KernelBook"));
  }
  if (!FileExists(path)) return absl::NotFoundError(absl::StrCat(path, " does not exist"));
  ASSIGN_OR_RETURN(const std::unique_ptr<RecordReader> reader, RecordReader::Open(path, Columns()));
  RowCollector rows(path, limit);
  if (!reader->columns().empty()) RETURN_IF_ERROR(rows.CheckColumns(reader->columns()));
  RETURN_IF_ERROR(ReadRows(reader.get(), &rows));
  return rows.Finish();
}

}  // namespace tritonrl
