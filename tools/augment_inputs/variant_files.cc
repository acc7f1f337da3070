#include "tools/augment_inputs/variant_files.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

namespace {

using Json = nlohmann::ordered_json;

std::string Dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

// "timeout" of "timeout: it ran longer than 30 s".
std::string NameOf(const std::string& reason) { return reason.substr(0, reason.find(": ")); }

std::string FindingText(const TaskFinding& finding) {
  return absl::StrCat(finding.reason, ": ", finding.message);
}

// Why the task has fewer variants than wanted, for example "3 of 5 variants after 2 rounds; 2 left
// out for timeout; the task itself: out_of_memory: ...".
std::string ShortfallText(const Family& family, int wanted) {
  if (family.rounds == 0) return "no answer of the endpoint; the same command asks again";
  std::string text =
      absl::StrCat(family.kept(), " of ", wanted, wanted == 1 ? " variant" : " variants", " after ",
                   family.rounds, family.rounds == 1 ? " round" : " rounds");
  std::map<std::string, int> reasons;
  for (const Variant& variant : family.variants) {
    if (!variant.left_out.empty()) ++reasons[NameOf(variant.left_out)];
  }
  for (const auto& [reason, count] : reasons) {
    absl::StrAppend(&text, "; ", count, " left out for ", reason);
  }
  if (!family.original.ok()) {
    absl::StrAppend(&text, "; the task itself: ", FindingText(family.original));
  }
  return text;
}

class VariantWriter {
 public:
  VariantWriter(const AugmentOptions& options, AugmentSummary* summary)
      : options_(options), summary_(*summary) {}

  absl::Status Write(const std::vector<Family>& families) {
    for (const Family& family : families) RETURN_IF_ERROR(WriteFamily(family));
    RETURN_IF_ERROR(WriteFileAtomic(options_.out + "/variants.jsonl", variants_));
    RETURN_IF_ERROR(WriteFileAtomic(options_.out + "/left_out.jsonl", left_out_));
    return WriteFileAtomic(options_.out + "/summary.json", Dump(SummaryJson(), 2));
  }

 private:
  absl::Status WriteFamily(const Family& family) {
    const std::string& id = family.task->id;
    const int kept = family.kept();
    if (kept < options_.variants) summary_.incomplete.push_back(id);
    summary_.lost += family.lost ? 1 : 0;
    if (family.broken()) {
      ++summary_.broken;
      left_out_ += Dump(Json{{"task", id}, {"reason", FindingText(family.original)}});
      return RemoveOldVariants(id, 0);
    }
    if (kept < options_.variants && options_.rounds > 1) {
      left_out_ += Dump(
          Json{{"task", id}, {"kept", kept}, {"reason", ShortfallText(family, options_.variants)}});
    }
    if (family.rounds == 0) return absl::OkStatus();  // its next response decides
    if (!family.original.ok()) ++summary_.originals[family.original.reason];
    if (options_.with_originals) {
      RETURN_IF_ERROR(WriteTask(id, family.task->source, family.inputs, id));
    }
    RETURN_IF_ERROR(WriteVersions(family));
    summary_.kept += kept;
    ++summary_.tasks_by_kept[kept];
    return RemoveOldVariants(id, kept);
  }

  absl::Status WriteVersions(const Family& family) {
    const std::string& id = family.task->id;
    int number = 0;  // of the last variant that was written
    for (size_t v = 0; v < family.variants.size(); ++v) {
      const Variant& variant = family.variants[v];
      if (variant.left_out.empty()) {
        RETURN_IF_ERROR(
            WriteTask(VariantName(id, ++number), variant.source, variant.finding.inputs, id));
        continue;
      }
      ++summary_.left_out[NameOf(variant.left_out)];
      left_out_ += Dump(Json{{"task", id}, {"variant", v + 1}, {"reason", variant.left_out}});
    }
    return absl::OkStatus();
  }

  absl::Status WriteTask(const std::string& name, const std::string& source,
                         const std::vector<std::string>& inputs, const std::string& task) {
    const std::string path = absl::StrCat(options_.out, "/", name, ".py");
    RETURN_IF_ERROR(CreateDirectories(DirName(path)));
    RETURN_IF_ERROR(WriteFileAtomic(path, source));
    variants_ += Dump(Json{{"variant", name}, {"task", task}, {"inputs", inputs}});
    return absl::OkStatus();
  }

  // Removes the files of variants that an earlier run with more variants wrote.
  absl::Status RemoveOldVariants(const std::string& id, int kept) const {
    for (int v = kept + 1; v <= kMostVariants; ++v) {
      RETURN_IF_ERROR(RemoveTree(absl::StrCat(options_.out, "/", VariantName(id, v), ".py")));
    }
    return absl::OkStatus();
  }

  Json SummaryJson() const {
    Json json = {{"model", options_.ask.model},
                 {"temperature", options_.ask.temperature},
                 {"top_p", options_.ask.top_p},
                 {"variants", options_.variants},
                 {"rounds", options_.rounds},
                 {"tasks", summary_.tasks},
                 {"complete", summary_.tasks - static_cast<int64_t>(summary_.incomplete.size())},
                 {"broken", summary_.broken},
                 {"proposed", summary_.proposed},
                 {"kept", summary_.kept},
                 {"prompt_tokens", summary_.counts.prompt_tokens},
                 {"completion_tokens", summary_.counts.completion_tokens},
                 {"cost", summary_.counts.cost}};
    json["left_out"] = Json::object();
    for (const auto& [reason, count] : summary_.left_out) json["left_out"][reason] = count;
    json["originals"] = Json::object();
    for (const auto& [reason, count] : summary_.originals) json["originals"][reason] = count;
    json["tasks_by_kept"] = Json::object();
    for (const auto& [kept, count] : summary_.tasks_by_kept) {
      json["tasks_by_kept"][absl::StrCat(kept)] = count;
    }
    return json;
  }

  const AugmentOptions& options_;
  AugmentSummary& summary_;
  std::string variants_, left_out_;  // contents of the files
};

}  // namespace

std::string VariantName(const std::string& task, int number) {
  return absl::StrCat(task, "_v", number);
}

absl::Status WriteVariants(const AugmentOptions& options, const std::vector<Family>& families,
                           AugmentSummary* summary) {
  VariantWriter writer(options, summary);
  return writer.Write(families);
}

}  // namespace tritonrl
