#include "tools/kernelbook/import.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "tasks/loader.h"
#include "tools/kernelbook/program_form.h"
#include "tools/task_check/findings_journal.h"

namespace tritonrl {
namespace {

constexpr char kSandboxError[] = "sandbox_error";

double SecondsSince(absl::Time start) { return absl::ToDoubleSeconds(absl::Now() - start); }

// One import: the rows that are still in, and those left out so far.
class Import {
 public:
  explicit Import(const ImportOptions& options) : options_(options) {}

  absl::StatusOr<ImportSummary> Run() {
    RETURN_IF_ERROR(CreateDirectories(options_.out));
    ASSIGN_OR_RETURN(journal_, FindingsJournal::Open(JoinPath(options_.out, "journal.jsonl")));
    RETURN_IF_ERROR(Read());
    RETURN_IF_ERROR(ClaimFolder(options_.out, options_.in));
    RETURN_IF_ERROR(CheckSources());
    RETURN_IF_ERROR(DropDuplicates());
    RETURN_IF_ERROR(RunTasks());
    DropNearDuplicates();
    summary_.kept = static_cast<int64_t>(rows_.size());
    std::sort(left_out_.begin(), left_out_.end(),
              [](const LeftOut& a, const LeftOut& b) { return a.row.number < b.row.number; });
    RETURN_IF_ERROR(WriteImport(options_.out, options_.in, rows_, left_out_, summary_));
    return summary_;
  }

 private:
  void Leave(KernelBookRow row, const std::string& reason, const std::string& message) {
    ++summary_.left_out[reason];
    row.python_code.clear();
    left_out_.push_back({std::move(row), reason, message});
  }

  // Keeps the rows (with their forms) for which `reason_of(i)` is empty.
  template <typename ReasonOf>
  void Filter(const ReasonOf& reason_of) {
    size_t kept = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const std::pair<std::string, std::string> reason = reason_of(i);
      if (!reason.first.empty()) {
        Leave(std::move(rows_[i]), reason.first, reason.second);
        continue;
      }
      if (kept != i) {
        rows_[kept] = std::move(rows_[i]);
        if (i < forms_.size()) forms_[kept] = std::move(forms_[i]);
      }
      ++kept;
    }
    rows_.resize(kept);
    if (forms_.size() > kept) forms_.resize(kept);
  }

  absl::Status Read() {
    const absl::Time start = absl::Now();
    ASSIGN_OR_RETURN(KernelBookRows read, ReadKernelBook(options_.in, options_.limit));
    summary_.rows = static_cast<int64_t>(read.rows.size() + read.bad.size());
    rows_ = std::move(read.rows);
    for (BadRow& bad : read.bad) Leave(std::move(bad.row), "bad_row", bad.message);
    std::map<std::string, int64_t> first;
    Filter([&](size_t i) -> std::pair<std::string, std::string> {
      if (rows_[i].uuid.empty()) return {};
      const auto [found, fresh] = first.emplace(rows_[i].uuid, rows_[i].number);
      if (fresh) return {};
      return {"duplicate_uuid",
              absl::StrCat("uuid ", rows_[i].uuid, " is that of row ", found->second, " too")};
    });
    summary_.read_seconds = SecondsSince(start);
    return absl::OkStatus();
  }

  // Syntax and functions of each source, and its normal form.
  absl::Status CheckSources() {
    const absl::Time start = absl::Now();
    forms_.resize(rows_.size());
    std::vector<std::string> problems(rows_.size());
    RETURN_IF_ERROR(ParallelFor(
        options_.check.workers, static_cast<int64_t>(rows_.size()), [&](int, int64_t i) {
          const KernelBookRow& row = rows_[i];
          const absl::Status task = CheckTaskSource(TaskName(row), TaskText(row));
          if (!task.ok()) problems[i] = Message(task);
          if (task.ok()) forms_[i] = FormOf(row.python_code, row.entry_point);
          return absl::OkStatus();
        }));
    Filter([&](size_t i) -> std::pair<std::string, std::string> {
      if (problems[i].empty()) return {};
      return {"not_a_task", problems[i]};
    });
    summary_.compare_seconds = SecondsSince(start);
    return absl::OkStatus();
  }

  // Leaves out repeated programs, and models that KernelBench holds.
  absl::Status DropDuplicates() {
    NearDuplicates benchmark(options_.similarity);
    std::vector<std::string> names;
    std::map<uint64_t, size_t> models;
    if (!options_.kernelbench.empty()) {
      ASSIGN_OR_RETURN(const TaskSet set, LoadTasks(options_.kernelbench));
      if (!set.problems.empty()) {
        Log(LogLevel::kWarning,
            absl::StrCat(set.problems.size(), " files of ", options_.kernelbench,
                         " are no tasks: ", set.problems[0]));
      }
      for (const Task& task : set.tasks) {
        const ProgramForm form = FormOf(task.source, "Model");
        models.emplace(form.model, names.size());
        benchmark.Add(form);
        names.push_back(task.id);
      }
    }
    std::map<uint64_t, int64_t> first;
    Filter([&](size_t i) -> std::pair<std::string, std::string> {
      const auto [found, fresh] = first.emplace(forms_[i].program, rows_[i].number);
      if (!fresh) {
        return {"duplicate", absl::StrCat("the same program as row ", found->second,
                                          " up to names, comments and white space")};
      }
      if (const auto same = models.find(forms_[i].model); same != models.end()) {
        return {"in_kernelbench", absl::StrCat("the same model as KernelBench's ",
                                               names[same->second], " up to names")};
      }
      const auto near = benchmark.Find(forms_[i]);
      if (!near.has_value()) return {};
      return {"near_kernelbench",
              absl::StrFormat("nearly the model of KernelBench's %s (similarity %.2f)",
                              names[near->first], near->second)};
    });
    return absl::OkStatus();
  }

  std::string KeyOf(const KernelBookRow& row) const {
    return Sha256Hex(absl::StrCat(version_, "\n", TaskText(row))).substr(0, 32);
  }

  absl::Status RunTasks() {
    const absl::Time start = absl::Now();
    ASSIGN_OR_RETURN(version_, TaskChecker::Version(options_.check));
    std::vector<size_t> open;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (journal_->Find(KeyOf(rows_[i])) == nullptr) open.push_back(i);
    }
    std::unique_ptr<TaskChecker> checker;
    if (!open.empty()) {
      ASSIGN_OR_RETURN(checker, TaskChecker::Start(options_.check));
    }
    const int64_t known = static_cast<int64_t>(rows_.size() - open.size());
    Progress progress(
        {.label = "running tasks", .total = static_cast<int64_t>(rows_.size()), .first = known});
    absl::Mutex mutex;
    int64_t done = known;
    std::map<size_t, std::string> lost;
    RETURN_IF_ERROR(
        ParallelFor(options_.check.workers, static_cast<int64_t>(open.size()),
                    [&](int, int64_t number) -> absl::Status {
                      const size_t i = open[number];
                      if (options_.stop()) return absl::CancelledError("the import was stopped");
                      absl::StatusOr<TaskFinding> finding = checker->Run(TaskText(rows_[i]));
                      if (finding.ok())
                        RETURN_IF_ERROR(journal_->Append(KeyOf(rows_[i]), *finding));
                      absl::MutexLock lock(&mutex);
                      if (!finding.ok()) lost[i] = Message(finding.status());
                      progress.Tick(++done, finding.ok() ? finding->reason : kSandboxError);
                      return absl::OkStatus();
                    }));
    summary_.ran = static_cast<int64_t>(open.size());
    summary_.run_seconds = SecondsSince(start);
    Filter([&](size_t i) -> std::pair<std::string, std::string> {
      if (const auto found = lost.find(i); found != lost.end())
        return {kSandboxError, found->second};
      const TaskFinding* finding = journal_->Find(KeyOf(rows_[i]));
      if (finding->ok()) return {};
      return {finding->reason, finding->message};
    });
    return absl::OkStatus();
  }

  void DropNearDuplicates() {
    NearDuplicates kept(options_.similarity);
    std::vector<int64_t> numbers;
    Filter([&](size_t i) -> std::pair<std::string, std::string> {
      if (const auto near = kept.Find(forms_[i]); near.has_value()) {
        return {"near_duplicate", absl::StrFormat("nearly the model of row %d (similarity %.2f)",
                                                  numbers[near->first], near->second)};
      }
      kept.Add(forms_[i]);
      numbers.push_back(rows_[i].number);
      return {};
    });
  }

  const ImportOptions& options_;
  std::unique_ptr<FindingsJournal> journal_;
  std::string version_;  // of the checker
  std::vector<KernelBookRow> rows_;
  std::vector<ProgramForm> forms_;  // of rows_, once they were made
  std::vector<LeftOut> left_out_;
  ImportSummary summary_;
};

}  // namespace

absl::StatusOr<ImportSummary> ImportKernelBook(const ImportOptions& options) {
  absl::StatusOr<ImportSummary> summary = Import(options).Run();
  if (absl::IsResourceExhausted(summary.status())) {
    return absl::ResourceExhaustedError(
        absl::StrCat(Message(summary.status()), "; what was run is kept"));
  }
  return summary;
}

}  // namespace tritonrl
