#include "eval/tables/figures.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
namespace {

constexpr double kSumTolerance = 1e-6;
constexpr absl::Duration kTimeout = absl::Minutes(2);

absl::Status CheckBars(const FailureBars& figure) {
  if (figure.bars.empty()) return absl::InvalidArgumentError("there is no bar to draw");
  for (const FailureBars::Bar& bar : figure.bars) {
    double sum = 0.0;
    for (double share : bar.shares) {
      if (!(share >= 0)) {
        return absl::InvalidArgumentError(absl::StrCat("bar ", bar.label, " has share ", share));
      }
      sum += share;
    }
    if (bar.shares.size() != figure.kinds.size() || !(std::abs(sum - 1) <= kSumTolerance)) {
      return absl::InvalidArgumentError(absl::StrCat("bar ", bar.label, " has ", bar.shares.size(),
                                                     " shares of sum ", sum, " for ",
                                                     figure.kinds.size(), " kinds"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCurve(const CurveFigure::Curve& curve, bool share) {
  int last = 0;
  for (const CurveFigure::Point& point : curve.points) {
    const Interval& v = point.value;
    if (point.k <= last) {
      return absl::InvalidArgumentError(absl::StrCat("k = ", point.k, " follows ", last));
    }
    if (!IsSound(v, share)) {
      return absl::InvalidArgumentError(
          absl::StrCat("value ", v.value, " with interval ", v.low, " to ", v.high));
    }
    last = point.k;
  }
  last = 0;
  for (const auto& [k, value] : curve.published) {
    if (k <= last || !std::isfinite(value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("published value ", value, " at k = ", k, " follows ", last));
    }
    last = k;
  }
  if (curve.points.empty() && curve.published.empty()) {
    return absl::InvalidArgumentError("there is no point to draw");
  }
  return absl::OkStatus();
}

absl::Status CheckCurves(const CurveFigure& figure) {
  if (figure.panels.empty()) return absl::InvalidArgumentError("there is no panel to draw");
  for (const CurveFigure::Panel& panel : figure.panels) {
    const MetricText* metric = FindMetricText(panel.metric);
    if (metric == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("no metric is called '", panel.metric, "'"));
    }
    for (const CurveFigure::Curve& curve : panel.curves) {
      RETURN_IF_ERROR(AddContext(CheckCurve(curve, metric->share),
                                 absl::StrCat("curve ", curve.label, " of ", panel.metric)));
    }
  }
  return absl::OkStatus();
}

nlohmann::json ToJson(const FailureBars& figure) {
  nlohmann::json bars = nlohmann::json::array();
  for (const FailureBars::Bar& bar : figure.bars) {
    bars.push_back({{"label", bar.label}, {"shares", bar.shares}});
  }
  return {{"form", "bars"}, {"title", figure.title}, {"kinds", figure.kinds}, {"bars", bars}};
}

// Values as they are drawn: shares in percent.
nlohmann::json ToJson(const CurveFigure::Curve& curve, double scale, const std::string& published) {
  const std::string name = curve.modelled ? curve.label + " (modelled)" : curve.label;
  nlohmann::json points = nlohmann::json::array();
  for (const CurveFigure::Point& point : curve.points) {
    const Interval& v = point.value;
    points.push_back({point.k, scale * v.value, scale * v.low, scale * v.high});  // infinity: null
  }
  nlohmann::json printed = nlohmann::json::array();
  for (const auto& [k, value] : curve.published) printed.push_back({k, scale * value});
  return {{"label", name},
          {"points", points},
          {"published_label", curve.label + ", " + published},
          {"published", printed}};
}

nlohmann::json ToJson(const CurveFigure& figure) {
  nlohmann::json panels = nlohmann::json::array();
  for (const CurveFigure::Panel& panel : figure.panels) {
    const MetricText& metric = *FindMetricText(panel.metric);
    nlohmann::json curves = nlohmann::json::array();
    for (const CurveFigure::Curve& curve : panel.curves) {
      curves.push_back(ToJson(curve, metric.share ? 100.0 : 1.0, figure.published_label));
    }
    panels.push_back(
        {{"title", absl::StrCat(metric.title, metric.share ? " (%)" : "")}, {"curves", curves}});
  }
  return {{"form", "curves"}, {"title", figure.title}, {"panels", panels}};
}

}  // namespace

absl::Status CheckFigure(const FigureData& figure) {
  if (const auto* bars = std::get_if<FailureBars>(&figure)) {
    return AddContext(CheckBars(*bars), absl::StrCat("figure '", bars->title, "'"));
  }
  const auto& curves = std::get<CurveFigure>(figure);
  return AddContext(CheckCurves(curves), absl::StrCat("figure '", curves.title, "'"));
}

absl::Status RenderFigure(const FigureData& figure, const std::string& svg,
                          const std::string& png) {
  RETURN_IF_ERROR(CheckFigure(figure));
  ASSIGN_OR_RETURN(const PythonEnv python, FindPythonEnv());
  ASSIGN_OR_RETURN(const std::string program, Runfile("eval/tables/figures.py"));
  RunCommandOptions options;
  options.timeout = kTimeout;
  options.input = std::visit([](const auto& f) { return ToJson(f); }, figure)
                      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  options.env = python.Environment();
  ASSIGN_OR_RETURN(
      const CommandResult result,
      RunCommand({python.interpreter, program, "--svg=" + svg, "--png=" + png}, options));
  if (result.ok()) return absl::OkStatus();
  const std::vector<std::string> lines = absl::StrSplit(result.err, '\n', absl::SkipWhitespace());
  return absl::UnavailableError(absl::StrCat("cannot draw ", svg, ": ",
                                             result.timed_out ? "it took too long"
                                             : lines.empty()  ? "Python says nothing"
                                                              : lines.back()));
}

}  // namespace tritonrl
