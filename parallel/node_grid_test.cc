#include "parallel/node_grid.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tritonrl {
namespace {

std::string WhyNot(const std::vector<int>& node_of_rank) {
  return std::string(GridOf(node_of_rank).status().message());
}

TEST(NodeGrid, NodesOfAsManyRanksOneBehindTheOther) {
  EXPECT_EQ(GridOf({0, 0, 2, 2}).value(), (NodeGrid{.nodes = 2, .ranks_per_node = 2}));
  EXPECT_EQ(GridOf({4, 4, 0, 0, 9, 9}).value(), (NodeGrid{.nodes = 3, .ranks_per_node = 2}));
  EXPECT_EQ(GridOf({0, 0, 0, 1, 1, 1}).value(), (NodeGrid{.nodes = 2, .ranks_per_node = 3}));
}

TEST(NodeGrid, SaysWhyThereAreNoTwoLevels) {
  EXPECT_EQ(WhyNot({0}), "there is only one rank");
  EXPECT_EQ(WhyNot({3, 3, 3}), "all 3 ranks are on one node");
  EXPECT_EQ(WhyNot({0, 1, 2}), "each of 3 nodes has one rank");
  EXPECT_EQ(WhyNot({0, 0, 1}), "the first node has 2 ranks and node number 2 has 1");
  EXPECT_EQ(WhyNot({0, 1, 1}), "the first node has 1 rank and node number 2 has 2");
  EXPECT_NE(WhyNot({0, 1, 0, 1}).find("not numbered one node behind the other"), std::string::npos);
}

TEST(NodeGrid, CountsNodes) {
  EXPECT_EQ(CountNodes({7, 0, 7}), 2);
  EXPECT_EQ(CountNodes({5}), 1);
}

}  // namespace
}  // namespace tritonrl
