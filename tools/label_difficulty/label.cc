#include "tools/label_difficulty/label.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/endpoint/ask_all.h"
#include "base/endpoint/response_journal.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "tools/endpoint/data_tool.h"

namespace tritonrl {

namespace {

using Json = nlohmann::ordered_json;

std::string KeyOf(const Task& task, int vote) { return absl::StrCat(task.id, "#", vote); }

// The place of a labelled task below the folder of the results.
std::string FileOf(const Task& task, int level) {
  return absl::StrCat("level", level, "/", NameWithoutLevel(task.id), ".py");
}

absl::Status CheckNames(const std::vector<Task>& tasks) {
  absl::flat_hash_map<std::string, std::string> ids;
  for (const Task& task : tasks) {
    const auto [other, is_new] = ids.try_emplace(NameWithoutLevel(task.id), task.id);
    if (!is_new) {
      return absl::InvalidArgumentError(
          absl::StrCat("the tasks ", other->second, " and ", task.id,
                       " would get the same name below the folders of levels; rename one"));
    }
  }
  return absl::OkStatus();
}

struct Labelled {
  std::vector<int> votes;
  std::vector<std::string> reasons;
};

class Labeller {
 public:
  Labeller(const LabelOptions& options, EndpointClient* client)
      : options_(options), client_(client), journal_(options.out + "/responses.jsonl") {}

  absl::StatusOr<LabelSummary> Run() {
    RETURN_IF_ERROR(CheckNames(options_.tasks));
    RETURN_IF_ERROR(Ask());
    summary_.counts = client_->counts();
    if (summary_.interrupted) return summary_;
    RETURN_IF_ERROR(ReadVotes());
    RETURN_IF_ERROR(Write());
    return summary_;
  }

 private:
  absl::StatusOr<AskItem> ItemOf(int64_t index) const {
    const Task& task = options_.tasks[index / options_.votes];
    const int vote = static_cast<int>(index % options_.votes);
    AskItem item = {.key = KeyOf(task, vote), .request = RequestFor(options_.ask, task.id, vote)};
    item.request.messages = {{.role = "user", .content = FillTask(options_.prompt, task.source)}};
    return item;
  }

  absl::Status Ask() {
    AskAllOptions ask;
    ask.journal = journal_;
    ask.label = "labels";
    ask.stop = options_.stop;
    ask.messages = options_.messages;
    ask.check = [](const EndpointResponse& response) {
      return ParseLevel(response.text()).status();
    };
    const int64_t count = static_cast<int64_t>(options_.tasks.size()) * options_.votes;
    ASSIGN_OR_RETURN(const AskAllSummary asked,
                     AskAll(
                         count, [this](int64_t i) { return ItemOf(i); }, ask, client_));
    summary_.interrupted = asked.interrupted;
    summary_.ended = asked.ended;
    summary_.failed = asked.failed;
    return absl::OkStatus();
  }

  absl::Status ReadVotes() {
    absl::flat_hash_map<std::string, const Task*> keys;
    for (const Task& task : options_.tasks) {
      for (int vote = 0; vote < options_.votes; ++vote) keys[KeyOf(task, vote)] = &task;
    }
    return ReadResponses(journal_, [&](const StoredResponse& stored) {
      const auto task = keys.find(stored.key);
      if (task == keys.end()) return absl::OkStatus();  // of a run with more votes
      absl::StatusOr<LevelAnswer> answer = ParseLevel(stored.response.text());
      if (!answer.ok()) return AddContext(answer.status(), stored.key);
      Labelled& labelled = labels_[task->second->id];
      labelled.votes.push_back(answer->level);
      labelled.reasons.push_back(std::move(answer->reason));
      return absl::OkStatus();
    });
  }

  absl::Status Write() {
    ASSIGN_OR_RETURN(const auto old_files, OldFiles());
    std::string lines;
    for (const Task& task : options_.tasks) {
      const auto found = labels_.find(task.id);
      if (found == labels_.end()) {
        ++summary_.tasks[0];
        continue;
      }
      const Labelled& labelled = found->second;
      const int level = MajorityLevel(labelled.votes);
      ++summary_.tasks[level];
      const bool divided = std::any_of(labelled.votes.begin(), labelled.votes.end(),
                                       [&](int vote) { return vote != level; });
      summary_.divided += divided ? 1 : 0;
      const std::string file = FileOf(task, level);
      RETURN_IF_ERROR(CreateDirectories(DirName(options_.out + "/" + file)));
      RETURN_IF_ERROR(WriteFileAtomic(options_.out + "/" + file, task.source));
      // More votes may move a task to another level.
      if (const auto old = old_files.find(task.id); old != old_files.end() && old->second != file) {
        RETURN_IF_ERROR(RemoveTree(options_.out + "/" + old->second));
      }
      const Json line = {{"task", task.id},
                         {"level", level},
                         {"file", file},
                         {"votes", labelled.votes},
                         {"reasons", labelled.reasons}};
      lines += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    }
    RETURN_IF_ERROR(WriteFileAtomic(options_.out + "/labels.jsonl", lines));
    return WriteFileAtomic(options_.out + "/summary.json", SummaryJson());
  }

  // The files that an earlier run wrote, by task.
  absl::StatusOr<absl::flat_hash_map<std::string, std::string>> OldFiles() const {
    absl::flat_hash_map<std::string, std::string> files;
    const std::string path = options_.out + "/labels.jsonl";
    if (!FileExists(path)) return files;
    ASSIGN_OR_RETURN(const auto lines, LineReader::Open(path, JsonlJournal::kMaxLineBytes));
    while (true) {
      ASSIGN_OR_RETURN(const std::optional<Line> line, lines->Next());
      if (!line.has_value()) return files;
      const Json json = Json::parse(line->text, nullptr, /*allow_exceptions=*/false);
      if (!json.is_object() || !json.contains("task") || !json["task"].is_string()) continue;
      // Only a name that this program makes is ever removed.
      const std::string id = json["task"].get<std::string>();
      for (int level = kLowestLevel; level <= kHighestLevel; ++level) {
        const std::string file = FileOf({.id = id}, level);
        if (json.value("file", "") == file) files[id] = file;
      }
    }
  }

  std::string SummaryJson() const {
    Json json = {{"model", options_.ask.model},
                 {"temperature", options_.ask.temperature},
                 {"top_p", options_.ask.top_p},
                 {"votes", options_.votes}};
    for (int level = kLowestLevel; level <= kHighestLevel; ++level) {
      json[absl::StrCat("level", level)] = summary_.tasks[level];
    }
    json["without_label"] = summary_.tasks[0];
    json["divided"] = summary_.divided;
    json["prompt_tokens"] = summary_.counts.prompt_tokens;
    json["completion_tokens"] = summary_.counts.completion_tokens;
    json["cost"] = summary_.counts.cost;
    return json.dump(2) + "\n";
  }

  const LabelOptions& options_;
  EndpointClient* const client_;
  const std::string journal_;
  LabelSummary summary_;
  absl::flat_hash_map<std::string, Labelled> labels_;  // by task
};

}  // namespace

absl::StatusOr<LabelSummary> LabelTasks(const LabelOptions& options, EndpointClient* client) {
  return Labeller(options, client).Run();
}

std::string LabelTable(const LabelSummary& summary) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (int level = kLowestLevel; level <= kHighestLevel; ++level) {
    rows.emplace_back(absl::StrCat("level ", level), absl::StrCat(summary.tasks[level]));
  }
  rows.emplace_back("without a label", absl::StrCat(summary.tasks[0]));
  rows.emplace_back("divided votes", absl::StrCat(summary.divided));
  rows.emplace_back("prompt tokens", absl::StrCat(summary.counts.prompt_tokens));
  rows.emplace_back("answer tokens", absl::StrCat(summary.counts.completion_tokens));
  if (summary.counts.cost > 0) {
    rows.emplace_back("cost", absl::StrFormat("$%.2f", summary.counts.cost));
  }
  return TwoColumns(rows);
}

std::string LabelFiles(const LabelSummary& summary) {
  std::string files;
  for (int level = kLowestLevel; level <= kHighestLevel; ++level) {
    if (summary.tasks[level] > 0) absl::StrAppend(&files, "level", level, ", ");
  }
  return absl::StrCat(files, "labels.jsonl, summary.json",
                      files.empty() ? "; no task has a label" : "");
}

}  // namespace tritonrl
