#include "trainer/learner/sample_exchange.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tritonrl {
namespace {

WeightedSample Item(int n) {
  WeightedSample item;
  item.sample.prompt.assign(3, n);
  item.sample.response.assign(n, 7);
  item.sample.old_log_probs.assign(n, -0.5F * static_cast<float>(n));
  if (n % 2 == 1) item.sample.reference_log_probs.assign(n, -0.25F);
  item.sample.plan_end = n / 2;
  item.sample.counted = n != 4;
  item.sample.reward_plan = 1.5;
  item.sample.advantage_plan = 0.1 * n;
  item.sample.advantage_code = -0.2 * n;
  item.group_weight = 1.0 / n;
  return item;
}

TEST(RlExchange, EverythingComesThrough) {
  const auto back = ParseSamples(SerializeSamples({Item(1), Item(4), Item(9)}));
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->size(), 3);
  EXPECT_EQ((*back)[1].sample.prompt, (std::vector<int32_t>{4, 4, 4}));
  EXPECT_EQ((*back)[1].sample.plan_end, 2);
  EXPECT_FALSE((*back)[1].sample.counted);
  EXPECT_TRUE((*back)[1].sample.reference_log_probs.empty());
  EXPECT_EQ((*back)[2].sample.response.size(), 9);
  EXPECT_EQ((*back)[2].sample.old_log_probs[8], -4.5F);
  EXPECT_EQ((*back)[2].sample.reference_log_probs.size(), 9);
  EXPECT_EQ((*back)[2].sample.reward_plan, 1.5);
  EXPECT_EQ((*back)[2].sample.advantage_plan, 0.1 * 9);
  EXPECT_EQ((*back)[2].sample.advantage_code, -0.2 * 9);
  EXPECT_EQ((*back)[0].group_weight, 1.0);
  EXPECT_TRUE(ParseSamples("")->empty());
}

TEST(RlExchange, GroupsComeInTheOrderOfTheirSlots) {
  std::vector<PlacedGroup> groups;
  for (const int slot : {5, 0, 3, 1}) {
    groups.push_back({slot, {"task" + std::to_string(slot), {Item(slot + 1).sample}}});
  }
  const std::string bytes = SerializeGroups(groups);
  const auto back = ParseGroups(bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->size(), 4);
  EXPECT_EQ((*back)[3].slot, 1);
  EXPECT_EQ((*back)[3].group.task_id, "task1");
  EXPECT_EQ((*back)[3].group.samples[0].advantage_code, -0.4);
  size_t whole = 0;  // number of sizes that are the end of a group
  for (size_t size = 1; size < bytes.size(); ++size) {
    const auto part = ParseGroups(bytes.substr(0, size));
    whole += part.ok();
    EXPECT_TRUE(part.ok() || absl::IsDataLoss(part.status())) << size;
  }
  EXPECT_EQ(whole, 3);

  auto ranks = ProcessGroup::Join(absl::Seconds(1));
  ASSERT_TRUE(ranks.ok());
  const auto odd = RedistributeGroups(groups, 1, 2, ranks->get());
  ASSERT_TRUE(odd.ok()) << odd.status();
  ASSERT_EQ(odd->size(), 3);
  EXPECT_EQ((*odd)[0].task_id, "task1");
  EXPECT_EQ((*odd)[1].task_id, "task3");
  EXPECT_EQ((*odd)[2].samples[0].response.size(), 6);
  EXPECT_TRUE(RedistributeGroups(groups, -1, 2, ranks->get())->empty());
}

TEST(RlExchange, DamagedBytesAreNoItems) {
  const std::string bytes = SerializeSamples({Item(5)});
  for (size_t size = 1; size < bytes.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(ParseSamples(bytes.substr(0, size)).status())) << size;
  }
  std::string endless = bytes;
  endless[7] = '\x7f';  // high byte of the first vector's size
  EXPECT_TRUE(absl::IsDataLoss(ParseSamples(endless).status()));
}

TEST(RlExchange, OneRankKeepsItsItems) {
  auto ranks = ProcessGroup::Join(absl::Seconds(1));
  ASSERT_TRUE(ranks.ok());
  const auto items = BalanceSamples({Item(2), Item(3)}, SequenceCost{}, ranks->get());
  ASSERT_TRUE(items.ok());
  ASSERT_EQ(items->size(), 2);
  EXPECT_EQ((*items)[1].sample.response.size(), 3);
}

}  // namespace
}  // namespace tritonrl
