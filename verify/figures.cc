#include "verify/figures.h"

#include <map>
#include <string>

namespace tritonrl {

void NoteFigures(const ExecResult& result, Verdict* verdict) {
  WorkerFigures* worker = verdict->mutable_worker();
  worker->set_device(result.device_name());
  worker->set_server(result.server());
  worker->set_gpu(result.gpu());
  worker->set_queue_seconds(result.queue_seconds());
  worker->set_wall_seconds(result.wall_seconds());
  worker->set_cpu_seconds(result.cpu_seconds());
  worker->set_peak_rss_bytes(result.peak_rss_bytes());
  worker->set_attempts(result.attempts() == 0 ? 1 : result.attempts());
  *worker->mutable_phase_seconds() = result.phase_seconds();
}

nlohmann::ordered_json FiguresJson(const Verdict& verdict) {
  if (!verdict.has_worker()) return nullptr;
  const WorkerFigures& worker = verdict.worker();
  nlohmann::ordered_json json;
  json["device"] = worker.device();
  if (!worker.server().empty()) json["server"] = worker.server();
  if (!worker.gpu().empty()) json["gpu"] = worker.gpu();
  json["queue_seconds"] = worker.queue_seconds();
  json["wall_seconds"] = worker.wall_seconds();
  json["cpu_seconds"] = worker.cpu_seconds();
  json["peak_rss_bytes"] = worker.peak_rss_bytes();
  json["attempts"] = worker.attempts();
  // Sorted: the order in a Protobuf map changes from run to run.
  const std::map<std::string, double> phases(worker.phase_seconds().begin(),
                                             worker.phase_seconds().end());
  json["phase_seconds"] = nlohmann::ordered_json::object();
  for (const auto& [phase, seconds] : phases) json["phase_seconds"][phase] = seconds;
  json["lint_seconds"] = verdict.seconds_lint();
  return json;
}

}  // namespace tritonrl
