#include "base/records/record_reader.h"

#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr size_t kBlock = 1 << 18;
constexpr size_t kMaxRecord = std::numeric_limits<int32_t>::max();
constexpr char kByteOrderMark[] = "\xEF\xBB\xBF";

bool IsSpace(int c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Follows the bytes of one array element up to the comma or bracket after it.
class ElementScanner {
 public:
  // Whether `c` is the first byte after the element.
  bool EndsAt(char c) {
    if (in_string_) {
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
      }
      return false;
    }
    if (depth_ == 0 && (c == ',' || c == ']')) return true;
    if (c == '"') in_string_ = true;
    if (c == '{' || c == '[') ++depth_;
    if (c == '}' || c == ']') --depth_;
    return false;
  }

 private:
  bool in_string_ = false;
  bool escaped_ = false;
  int depth_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RecordReader>> RecordReader::Open(
    const std::string& path, const std::vector<std::string>& columns) {
  ASSIGN_OR_RETURN(OpenedSource source, OpenByteSource(path, columns));
  std::unique_ptr<RecordReader> reader(new RecordReader(path, std::move(source)));
  RETURN_IF_ERROR(reader->Begin());
  return reader;
}

absl::Status RecordReader::Begin() {
  if (kind_ == FileKind::kParquet) return absl::OkStatus();
  while (!end_ && buffer_.size() < 4) RETURN_IF_ERROR(Fill());
  if (absl::StartsWith(buffer_, kByteOrderMark)) used_ = sizeof(kByteOrderMark) - 1;
  const absl::string_view start = absl::string_view(buffer_).substr(used_);
  for (const absl::string_view mark : {"\xFF\xFE", "\xFE\xFF"}) {
    if (absl::StartsWith(start, mark)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, " is written in UTF-16; convert it to UTF-8"));
    }
  }
  RETURN_IF_ERROR(SkipSpace());
  ASSIGN_OR_RETURN(const int first, Peek());
  if (first == '[') {
    array_ = true;
    Take();
  }
  return absl::OkStatus();
}

absl::Status RecordReader::Fill() {
  buffer_.erase(0, used_);
  used_ = 0;
  const size_t before = buffer_.size();
  buffer_.resize(before + kBlock);
  const absl::StatusOr<size_t> n = bytes_->Read(buffer_.data() + before, kBlock);
  buffer_.resize(before + (n.ok() ? *n : 0));
  if (!n.ok()) return n.status();
  end_ = *n == 0;
  return absl::OkStatus();
}

absl::StatusOr<int> RecordReader::Peek() {
  while (used_ == buffer_.size() && !end_) RETURN_IF_ERROR(Fill());
  return used_ == buffer_.size() ? -1 : static_cast<int>(static_cast<uint8_t>(buffer_[used_]));
}

void RecordReader::Take() {
  if (buffer_[used_] == '\n') ++line_;
  ++used_;
}

absl::Status RecordReader::SkipSpace() {
  while (true) {
    ASSIGN_OR_RETURN(const int c, Peek());
    if (!IsSpace(c)) return absl::OkStatus();
    Take();
  }
}

absl::StatusOr<std::optional<Record>> RecordReader::Next() {
  return array_ ? NextElement() : NextLine();
}

absl::StatusOr<std::optional<Record>> RecordReader::NextLine() {
  RETURN_IF_ERROR(SkipSpace());
  size_t searched = used_, at;
  while ((at = buffer_.find('\n', searched)) == std::string::npos && !end_) {
    if (buffer_.size() - used_ > kMaxRecord) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ":", line_, ": the line is longer than 2 GiB"));
    }
    searched = buffer_.size() - used_;  // Fill moves the line to the start of the buffer
    RETURN_IF_ERROR(Fill());
  }
  const size_t end = std::min(at, buffer_.size());
  Record record{.line = line_, .number = records_ + 1};
  record.complete = at != std::string::npos;
  record.text = buffer_.substr(used_, end - used_);
  while (!record.text.empty() && IsSpace(record.text.back())) record.text.pop_back();
  used_ = std::min(end + 1, buffer_.size());
  ++line_;
  if (record.text.empty()) return std::optional<Record>();
  ++records_;
  return record;
}

absl::StatusOr<std::optional<Record>> RecordReader::NextElement() {
  if (array_end_) return std::optional<Record>();
  RETURN_IF_ERROR(SkipSpace());
  ASSIGN_OR_RETURN(const int c, Peek());
  if (c == ']') {
    RETURN_IF_ERROR(EndArray());
    return std::optional<Record>();
  }
  Record record{.line = line_, .number = ++records_};
  ElementScanner scanner;
  while (true) {
    size_t end = used_;
    while (end < buffer_.size() && !scanner.EndsAt(buffer_[end])) ++end;
    record.text.append(buffer_, used_, end - used_);
    line_ += std::count(buffer_.begin() + used_, buffer_.begin() + end, '\n');
    used_ = end;
    if (used_ < buffer_.size()) break;
    if (record.text.size() > kMaxRecord) {
      return absl::InvalidArgumentError(absl::StrCat(Where(record), ": it is longer than 2 GiB"));
    }
    if (end_) {
      return absl::DataLossError(
          absl::StrCat(Where(record), ": the file ends within the JSON array; was it cut off?"));
    }
    RETURN_IF_ERROR(Fill());
  }
  if (buffer_[used_] == ']') {
    RETURN_IF_ERROR(EndArray());
  } else {
    Take();
  }
  absl::StripTrailingAsciiWhitespace(&record.text);
  return record;
}

absl::Status RecordReader::EndArray() {
  Take();
  array_end_ = true;
  RETURN_IF_ERROR(SkipSpace());
  ASSIGN_OR_RETURN(const int c, Peek());
  if (c < 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path_, ":", line_,
                   ": there is text behind the end of the JSON array (wanted: one JSON array, or "
                   "one object in each line)"));
}

std::string RecordReader::Describe() const {
  if (kind_ == FileKind::kParquet) return "Parquet";
  return absl::StrCat(array_ ? "JSON array" : "JSON Lines",
                      kind_ == FileKind::kGzip ? ", gzip" : "");
}

std::string RecordReader::Where(const Record& record) const {
  if (kind_ == FileKind::kParquet) return absl::StrCat(path_, " (row ", record.number, ")");
  if (!array_) return absl::StrCat(path_, ":", record.line);
  return absl::StrCat(path_, ":", record.line, " (example ", record.number, ")");
}

}  // namespace tritonrl
