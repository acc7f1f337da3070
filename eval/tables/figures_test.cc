#include "eval/tables/figures.h"

#include <cmath>

#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

FailureBars Bars() {
  FailureBars figure;
  figure.title = "How samples end";
  figure.kinds = {"syntax", "functionality", "correct"};
  figure.bars = {{"HRD", {0.125, 0.25, 0.625}}, {"start $x_1$", {0.5, 0.5, 0.0}}};
  return figure;
}

CurveFigure Curves() {
  CurveFigure figure;
  figure.title = "pass@k";
  figure.published_label = "published (8B, L40S)";
  CurveFigure::Curve ours{"HRD", {{1, {0.25, 0.125, 0.5}}, {10, {0.75, 0.5, 0.875}}}, {}, false};
  CurveFigure::Curve fast = ours;
  fast.modelled = true;
  fast.published = {{1, 0.19}, {5, 0.29}, {10, 0.36}};
  figure.panels = {{"correct", {ours}}, {"fast_1", {fast}}};
  return figure;
}

// The SVG of a figure; the PNG lies beside it.
std::string Draw(const FigureData& figure, const std::string& name) {
  const std::string path = JoinPath(::testing::TempDir(), name);
  const absl::Status status = RenderFigure(figure, path + ".svg", path + ".png");
  EXPECT_TRUE(status.ok()) << status;
  const auto png = ReadFile(path + ".png");
  EXPECT_TRUE(png.ok() && png->size() > 5000 && png->starts_with("\x89PNG\r\n"));
  return ReadFile(path + ".svg").value_or("");
}

TEST(RenderFigureTest, BarsHaveAllTexts) {
  const std::string svg = Draw(Bars(), "bars");
  for (const std::string text : {"How samples end", "HRD", "start $x_1$", "syntax", "functionality",
                                 "share of the samples (%)", ">12.5<", ">25.0<", ">62.5<"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
  EXPECT_EQ(Draw(Bars(), "bars_again"), svg);
}

TEST(RenderFigureTest, CurvesSayWhatIsModelledAndPublished) {
  const std::string svg = Draw(Curves(), "curves");
  for (const std::string text : {"pass@k", ">correct (%)<", ">fast_1 (%)<", ">HRD<",
                                 ">HRD (modelled)<", ">HRD, published (8B, L40S)<"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
  EXPECT_EQ(Draw(Curves(), "curves_again"), svg);
}

TEST(RenderFigureTest, AnIntervalIsDrawn) {
  CurveFigure wide = Curves();
  const std::string before = Draw(wide, "narrow");
  wide.panels[0].curves[0].points[0].value.high = 0.625;
  EXPECT_NE(Draw(wide, "wide"), before);
}

TEST(RenderFigureTest, APointWithoutAnInterval) {
  CurveFigure figure = Curves();
  figure.panels.pop_back();
  const std::string with_interval = Draw(figure, "with_interval");
  for (CurveFigure::Point& point : figure.panels[0].curves[0].points) {
    point.value.low = -INFINITY;
    point.value.high = INFINITY;
  }
  const std::string without_interval = Draw(figure, "without_interval");
  EXPECT_THAT(with_interval, HasSubstr("LineCollection"));
  EXPECT_THAT(without_interval, Not(HasSubstr("LineCollection")));
}

TEST(RenderFigureTest, AFolderThatDoesNotExist) {
  const absl::Status status = RenderFigure(Bars(), "/nowhere/a.svg", "/nowhere/a.png");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("No such file or directory"));
}

void ExpectBad(const FigureData& figure, const std::string& message) {
  const absl::Status status = RenderFigure(figure, "/nowhere/a.svg", "/nowhere/a.png");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

TEST(CheckFigureTest, BadBars) {
  FailureBars bad = Bars();
  bad.bars[1].shares[0] = 0.25;
  ExpectBad(bad, "figure 'How samples end': bar start $x_1$ has 3 shares of sum 0.75 for 3 kinds");
  bad.bars[1].shares = {1.5, -0.5, 0.0};
  ExpectBad(bad, "has share -0.5");
  bad.bars[1].shares = {1.0};
  ExpectBad(bad, "has 1 shares");
  bad.bars[1].shares = {1.0, std::nan(""), 0.0};
  ExpectBad(bad, "has share nan");
  bad.bars.clear();
  ExpectBad(bad, "there is no bar to draw");
}

TEST(CheckFigureTest, BadCurves) {
  CurveFigure bad = Curves();
  bad.panels[0].curves[0].points[1].k = 1;
  ExpectBad(bad, "figure 'pass@k': curve HRD of correct: k = 1 follows 1");
  bad = Curves();
  bad.panels[0].curves[0].points[1].value.low = 0.8;
  ExpectBad(bad, "value 0.75 with interval 0.8");
  bad = Curves();
  bad.panels[0].curves[0].points[1].value.value = std::nan("");
  ExpectBad(bad, "value nan");
  bad = Curves();
  bad.panels[1].curves[0].published[1].first = 1;
  ExpectBad(bad, "published value 0.29 at k = 1 follows 1");
  bad = Curves();
  bad.panels[0].curves[0].points.clear();
  ExpectBad(bad, "there is no point to draw");
  bad = Curves();
  bad.panels[0].metric = "speed";
  ExpectBad(bad, "no metric is called 'speed'");
  bad.panels.clear();
  ExpectBad(bad, "there is no panel to draw");
}

}  // namespace
}  // namespace tritonrl
