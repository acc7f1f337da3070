#include "exec/testing/process_tree.h"

#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"

namespace tritonrl {
namespace {

std::vector<pid_t> AllProcesses() {
  std::vector<pid_t> pids;
  const auto names = ListDirectory("/proc");
  if (!names.ok()) return pids;
  for (const std::string& name : *names) {
    int pid = 0;
    if (absl::SimpleAtoi(name, &pid)) pids.push_back(pid);
  }
  return pids;
}

std::string ReadOf(pid_t pid, const char* file) {
  const auto text = ReadFile(absl::StrCat("/proc/", pid, "/", file));
  return text.ok() ? *text : "";
}

// Parses "pid (name) state parent ..."; the name may contain any characters, even brackets. Returns
// 0 if the process has ended.
pid_t ParentOf(pid_t pid) {
  const std::string stat = ReadOf(pid, "stat");
  const size_t bracket = stat.rfind(')');
  if (bracket == std::string::npos) return 0;
  const std::vector<std::string> rest = absl::StrSplit(stat.substr(bracket + 2), ' ');
  int parent = 0;
  return rest.size() > 1 && absl::SimpleAtoi(rest[1], &parent) ? parent : 0;
}

}  // namespace

std::set<pid_t> Descendants(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  for (const pid_t pid : AllProcesses()) children.emplace(ParentOf(pid), pid);
  std::set<pid_t> found;
  std::vector<pid_t> todo = {root};
  while (!todo.empty()) {
    const pid_t parent = todo.back();
    todo.pop_back();
    const auto [begin, end] = children.equal_range(parent);
    for (auto child = begin; child != end; ++child) {
      if (found.insert(child->second).second) todo.push_back(child->second);
    }
  }
  return found;
}

std::set<pid_t> ProcessesNaming(const std::string& word) {
  std::set<pid_t> found;
  for (const pid_t pid : AllProcesses()) {
    if (absl::StrContains(ReadOf(pid, "cmdline"), word) ||
        absl::StrContains(ReadOf(pid, "comm"), word)) {
      found.insert(pid);
    }
  }
  return found;
}

int64_t PrivateBytes(pid_t pid) {
  int64_t total = 0;
  for (const absl::string_view line : absl::StrSplit(ReadOf(pid, "smaps_rollup"), '\n')) {
    if (!absl::StartsWith(line, "Private_")) continue;
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int64_t kilobytes = 0;
    if (words.size() >= 2 && absl::SimpleAtoi(words[1], &kilobytes)) total += kilobytes * 1024;
  }
  return total;
}

}  // namespace tritonrl
