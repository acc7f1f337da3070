#include "exec/soaking/soak_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
namespace {

using Json = nlohmann::ordered_json;

std::string Counts(const std::map<std::string, int>& counts) {
  if (counts.empty()) return "none";
  return absl::StrJoin(counts, ", ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.first, " ", entry.second);
  });
}

double Rate(const SoakReport& report) { return report.done / std::max(report.seconds, 1e-9); }

}  // namespace

bool SoakReport::MemoryIsFlat() const {
  if (memory.empty()) return false;
  const auto flat = [](int64_t first, int64_t last) {
    return last < first + first / 10 + (16 << 20);
  };
  return flat(memory.front().supervisor, memory.back().supervisor) &&
         flat(memory.front().workers, memory.back().workers);
}

std::string SoakStateText(const SoakState& state) {
  std::map<std::string, int> done;
  for (const auto& [kind, figures] : state.kinds) done[kind] = figures.count;
  const std::string wrong =
      state.wrong == 0 ? ""
                       : absl::StrCat(", ", state.wrong, " WRONG (last: ", state.last_wrong, ")");
  return absl::StrFormat("soak: %d/%d after %.0f s%s; running: %s; done: %s", state.done,
                         state.planned, state.seconds, wrong, Counts(state.running), Counts(done));
}

std::string SoakReportText(const SoakReport& report) {
  std::string text = absl::StrCat("sandbox: ", report.sandbox, "\n");
  absl::StrAppendFormat(&text, "  %-20s %6s %12s %12s\n", "kind", "count", "mean s", "longest s");
  for (const auto& [kind, figures] : report.kinds) {
    absl::StrAppendFormat(&text, "  %-20s %6d %12.2f %12.2f\n", kind, figures.count,
                          figures.seconds / std::max(figures.count, 1), figures.longest);
  }
  absl::StrAppend(&text, "outcomes:\n");
  for (const auto& [name, count] : report.outcomes) {
    absl::StrAppendFormat(&text, "  %-20s %6d\n", name, count);
  }
  for (const SoakMemory& memory : report.memory) {
    absl::StrAppendFormat(
        &text, "after %5d verdicts: supervisor %.1f MiB, its workers %.1f MiB (private memory)\n",
        memory.verdicts, memory.supervisor / 1048576.0, memory.workers / 1048576.0);
  }
  absl::StrAppendFormat(
      &text,
      "%d verdicts in %.0f s, %.2f a second (first worker after %.1f s); workers started %d, lost "
      "%d\n",
      report.done, report.seconds, Rate(report), report.start_seconds,
      report.counts.workers_started, report.counts.workers_lost);
  if (report.done < report.planned) {
    absl::StrAppendFormat(&text, "%d of %d were begun in the time; ended by its end: %s\n",
                          report.done, report.planned, Counts(report.unfinished));
  }
  for (const std::string& wrong : report.wrong) absl::StrAppend(&text, "WRONG ", wrong, "\n");
  for (const std::string& left : report.left) absl::StrAppend(&text, "LEFT ", left, "\n");
  return absl::StrCat(text, "wrong or lost verdicts: ", report.wrong.size(),
                      "; left behind: ", report.left.size(), "; memory ",
                      report.MemoryIsFlat() ? "flat" : "GROWS", "\n");
}

std::string SoakReportJson(const SoakReport& report) {
  Json json = {{"planned", report.planned},
               {"verdicts", report.done},
               {"seconds", report.seconds},
               {"per_second", Rate(report)},
               {"start_seconds", report.start_seconds},
               {"wrong", report.wrong},
               {"left", report.left},
               {"memory_flat", report.MemoryIsFlat()},
               {"workers_started", report.counts.workers_started},
               {"workers_lost", report.counts.workers_lost},
               {"sandbox", report.sandbox},
               {"unfinished", report.unfinished},
               {"outcomes", report.outcomes}};
  json["kinds"] = Json::object();
  for (const auto& [kind, figures] : report.kinds) {
    json["kinds"][kind] = {{"count", figures.count},
                           {"mean_seconds", figures.seconds / std::max(figures.count, 1)},
                           {"longest_seconds", figures.longest}};
  }
  json["memory"] = Json::array();
  for (const SoakMemory& memory : report.memory) {
    json["memory"].push_back({{"verdicts", memory.verdicts},
                              {"supervisor_bytes", memory.supervisor},
                              {"workers_bytes", memory.workers}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tritonrl
