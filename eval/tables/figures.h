// Figures as SVG and PNG, drawn by matplotlib (figures.py).
#ifndef TRITONRL_EVAL_TABLES_FIGURES_H_
#define TRITONRL_EVAL_TABLES_FIGURES_H_

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "eval/tables/table.h"

namespace tritonrl {

// How the samples of several models end, as a stacked bar for each model (the paper's Figure 3).
struct FailureBars {
  struct Bar {
    std::string label;
    std::vector<double> shares;  // of all samples, one for each kind; their sum is 1
  };
  std::string title;
  std::vector<std::string> kinds;  // from bottom to top, e.g. "syntax", ..., "correct"
  std::vector<Bar> bars;
};

// A metric over the number of samples, panel beside panel (the paper's Figures 4 and 5).
struct CurveFigure {
  struct Point {
    int k = 1;
    Interval value;  // in the metric's unit, as in Cell
  };
  struct Curve {
    std::string label;
    std::vector<Point> points;                      // with rising k; the intervals are error bars
    std::vector<std::pair<int, double>> published;  // (k, value); a dashed line of its own
    bool modelled = false;                          // then the legend says so
  };
  struct Panel {
    std::string metric;  // a name of FindMetricText; shares are drawn in percent
    std::vector<Curve> curves;
  };
  std::string title;
  std::string published_label;  // as TableData::published_label
  std::vector<Panel> panels;
};

using FigureData = std::variant<FailureBars, CurveFigure>;

// InvalidArgument names the bar or curve, if shares do not add up to 1 or do not fit the kinds, a
// metric is unknown, k does not rise, a value is not finite or outside of its interval, or there
// is nothing to draw.
absl::Status CheckFigure(const FigureData& figure);

// Draws the figure into both files; their folders exist. The same figure gives the same bytes of
// SVG. Errors: those of CheckFigure; NotFound without a Python; Unavailable with Python's last
// line if drawing fails or takes longer than two minutes.
absl::Status RenderFigure(const FigureData& figure, const std::string& svg, const std::string& png);

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_TABLES_FIGURES_H_
