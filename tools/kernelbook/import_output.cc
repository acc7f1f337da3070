#include "tools/kernelbook/import_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"

namespace tritonrl {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxNamePart = 60;
constexpr size_t kHashBlock = 1 << 20;

std::string SafePart(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-';
    safe.push_back(plain ? c : '_');
  }
  return safe.substr(0, kMaxNamePart);
}

std::string Dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

// The names of the tasks, each once.
std::vector<std::string> TaskNames(const std::vector<KernelBookRow>& kept) {
  std::vector<std::string> names;
  std::set<std::string> used;
  for (const KernelBookRow& row : kept) {
    std::string name = TaskName(row);
    // Two uuids can become the same name, and that name with the row can be another's.
    while (!used.insert(name).second) name = absl::StrCat(name, "_row", row.number);
    names.push_back(std::move(name));
  }
  return names;
}

// Fills the folder `path` with the tasks and waits until all is on the disk.
absl::Status FillTasks(const std::string& path, const std::vector<KernelBookRow>& kept,
                       const std::vector<std::string>& names) {
  RETURN_IF_ERROR(RemoveTree(path));
  RETURN_IF_ERROR(CreateDirectories(path));
  for (size_t i = 0; i < kept.size(); ++i) {
    RETURN_IF_ERROR(AppendToFile(absl::StrCat(JoinPath(path, names[i]), ".py"), TaskText(kept[i])));
  }
  const ScopedFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid() || syncfs(folder.get()) != 0) return ErrnoStatus(errno, "sync", path);
  return absl::OkStatus();
}

absl::Status ReplaceTasks(const std::string& out, const std::vector<KernelBookRow>& kept,
                          const std::vector<std::string>& names) {
  const std::string tasks = JoinPath(out, "tasks");
  const std::string fresh = JoinPath(out, "tasks.new"), old = JoinPath(out, "tasks.old");
  RETURN_IF_ERROR(FillTasks(fresh, kept, names));
  RETURN_IF_ERROR(RemoveTree(old));
  if (DirectoryExists(tasks)) RETURN_IF_ERROR(RenameFile(tasks, old));
  RETURN_IF_ERROR(RenameFile(fresh, tasks));
  return RemoveTree(old);
}

std::string OriginLines(const std::vector<KernelBookRow>& kept,
                        const std::vector<std::string>& names) {
  std::string lines;
  for (size_t i = 0; i < kept.size(); ++i) {
    const KernelBookRow& row = kept[i];
    absl::StrAppend(&lines,
                    Dump(Json{{"task", names[i]},
                              {"row", row.number},
                              {"uuid", row.uuid},
                              {"repo_name", row.repo_name},
                              {"repo_link", row.repo_link},
                              {"sha", row.sha},
                              {"licenses", row.licenses}}),
                    "\n");
  }
  return lines;
}

std::string LeftOutLines(const std::vector<LeftOut>& left_out) {
  std::string lines;
  for (const LeftOut& item : left_out) {
    absl::StrAppend(&lines,
                    Dump(Json{{"row", item.row.number},
                              {"uuid", item.row.uuid},
                              {"entry_point", item.row.entry_point},
                              {"repo_name", item.row.repo_name},
                              {"reason", item.reason},
                              {"message", item.message}}),
                    "\n");
  }
  return lines;
}

int64_t CountOf(const ImportSummary& summary, const std::string& reason) {
  const auto found = summary.left_out.find(reason);
  return found == summary.left_out.end() ? 0 : found->second;
}

std::string SummaryJson(const std::string& in, const ImportSummary& summary) {
  Json stages = Json::array();
  int64_t remaining = summary.rows;
  for (const auto& [stage, reasons] : ReasonsByStage()) {
    Json counts = Json::object();
    int64_t sum = 0;
    for (const std::string& reason : reasons) {
      if (const int64_t count = CountOf(summary, reason); count > 0) {
        counts[reason] = count;
        sum += count;
      }
    }
    remaining -= sum;
    stages.push_back(
        {{"stage", stage}, {"left_out", sum}, {"reasons", counts}, {"remaining", remaining}});
  }
  return Dump(Json{{"in", in}, {"rows", summary.rows}, {"kept", summary.kept}, {"stages", stages}},
              2) +
         "\n";
}

// SHA-256 of a file, in hex digits.
absl::StatusOr<std::string> HashOfFile(const std::string& path) {
  const ScopedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "read", path);
  Sha256 hash;
  std::string block(kHashBlock, '\0');
  while (true) {
    const ssize_t n = read(fd.get(), block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "read", path);
    if (n == 0) return absl::BytesToHexString(hash.Finish());
    hash.Update(absl::string_view(block.data(), static_cast<size_t>(n)));
  }
}

// The text in the field `name` of a JSON file, or "" if there is none.
std::string FieldOf(const std::string& path, const char* name) {
  const auto text = ReadFile(path);
  if (!text.ok()) return "";
  const Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains(name) || !json[name].is_string()) return "";
  return json[name].get<std::string>();
}

}  // namespace

const std::vector<std::pair<std::string, std::vector<std::string>>>& ReasonsByStage() {
  static const auto* stages = new std::vector<std::pair<std::string, std::vector<std::string>>>{
      {"read", {"bad_row", "duplicate_uuid"}},
      {"format", {"not_a_task"}},
      {"duplicates", {"duplicate", "in_kernelbench", "near_kernelbench"}},
      {"run",
       {"load_error", "construct_error", "input_error", "run_error", "needs_gradient",
        "no_tensor_output", "unsupported_values", "not_finite", "random_result", "constant_result",
        "timeout", "out_of_memory", "crashed", "output_limit", "process_limit", "bad_result",
        "sandbox_error"}},
      {"near duplicates", {"near_duplicate"}},
  };
  return *stages;
}

std::string TaskName(const KernelBookRow& row) {
  const std::string id = row.uuid.empty() ? absl::StrCat("row", row.number) : row.uuid;
  return absl::StrCat(SafePart(id), "_", SafePart(row.entry_point));
}

std::string TaskText(const KernelBookRow& row) {
  std::string text = row.python_code;
  if (!absl::EndsWith(text, "\n")) text += "\n";
  if (row.entry_point != "Model") absl::StrAppend(&text, "\n\nModel = ", row.entry_point, "\n");
  return text;
}

absl::Status ClaimFolder(const std::string& out, const std::string& in) {
  const std::string path = JoinPath(out, "source.json"), summary = JoinPath(out, "summary.json");
  ASSIGN_OR_RETURN(const std::string hash, HashOfFile(in));
  const std::string known = FieldOf(path, "sha256");
  // The import of an earlier version has its summary alone, which names the file.
  const std::string owner = FieldOf(FileExists(path) ? path : summary, "in");
  if (known == hash || (known.empty() && owner == in)) {
    if (known == hash && owner == in) return absl::OkStatus();
  } else if (!owner.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        out, " holds the import of ", owner, owner == in ? " as it was before" : "", ", not of ",
        in, owner == in ? " as it is now" : "", "; give another --out, or remove the folder"));
  }
  return WriteFileAtomic(path, Dump(Json{{"in", in}, {"sha256", hash}}, 2) + "\n");
}

absl::Status WriteImport(const std::string& out, const std::string& in,
                         const std::vector<KernelBookRow>& kept,
                         const std::vector<LeftOut>& left_out, const ImportSummary& summary) {
  const std::vector<std::string> names = TaskNames(kept);
  RETURN_IF_ERROR(ReplaceTasks(out, kept, names));
  RETURN_IF_ERROR(WriteFileAtomic(JoinPath(out, "origins.jsonl"), OriginLines(kept, names)));
  RETURN_IF_ERROR(WriteFileAtomic(JoinPath(out, "left_out.jsonl"), LeftOutLines(left_out)));
  return WriteFileAtomic(JoinPath(out, "summary.json"), SummaryJson(in, summary));
}

std::string ImportTable(const ImportSummary& summary) {
  int64_t remaining = summary.rows;
  std::string table = absl::StrFormat("%-24s %10s %10s\n%-24s %10s %10d\n", "stage", "left out",
                                      "remaining", "rows", "", remaining);
  for (const auto& [stage, reasons] : ReasonsByStage()) {
    int64_t sum = 0;
    std::string lines;
    for (const std::string& reason : reasons) {
      const int64_t count = CountOf(summary, reason);
      if (count == 0) continue;
      sum += count;
      absl::StrAppendFormat(&lines, "  %-22s %10d\n", reason, count);
    }
    remaining -= sum;
    absl::StrAppendFormat(&table, "%-24s %10d %10d\n%s", stage, sum, remaining, lines);
  }
  return table;
}

}  // namespace tritonrl
