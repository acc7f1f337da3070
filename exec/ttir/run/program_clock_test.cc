#include "exec/ttir/run/program_clock.h"

#include <algorithm>
#include <map>
#include <random>

#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

TEST(ProgramClockTest, NeighboursAreOneRun) {
  ProgramClock clock;
  EXPECT_EQ(clock.TimeOf(0), 0u);
  for (uint32_t program = 3; program < 1000; ++program) clock.SetLast(program, 2);
  EXPECT_EQ(clock.runs(), 1u);
  EXPECT_EQ(clock.TimeOf(2), 0u);
  EXPECT_EQ(clock.TimeOf(3), 2u);
  EXPECT_EQ(clock.TimeOf(999), 2u);
  EXPECT_EQ(clock.TimeOf(1000), 0u);
  clock.SetLast(999, 5);
  EXPECT_EQ(clock.TimeOf(998), 2u);
  EXPECT_EQ(clock.TimeOf(999), 5u);
  EXPECT_EQ(clock.runs(), 2u);
}

TEST(ProgramClockTest, JoinsAreTheLaterTimes) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    ProgramClock clocks[2];
    std::map<uint32_t, uint32_t> expected;
    for (ProgramClock& clock : clocks) {
      uint32_t program = random() % 4;
      for (int i = 0; i < 8; ++i) {
        const uint32_t time = 1 + random() % 3;
        clock.SetLast(program, time);
        expected[program] = std::max(expected[program], time);
        program += 1 + random() % 3 / 2;
      }
    }
    clocks[0].Join(clocks[1]);
    for (uint32_t program = 0; program < 40; ++program) {
      const uint32_t time = expected.count(program) > 0 ? expected[program] : 0;
      ASSERT_EQ(clocks[0].TimeOf(program), time) << round << ", " << program;
    }
    EXPECT_LE(clocks[0].runs(), expected.size());
  }
}

TEST(ProgramClockTest, JoinsOfTheLastPrograms) {
  ProgramClock a;
  ProgramClock b;
  b.SetLast(UINT32_MAX, 1);
  a.SetLast(UINT32_MAX - 1, 1);
  a.Join(b);
  EXPECT_EQ(a.runs(), 1u);
  EXPECT_EQ(a.TimeOf(UINT32_MAX), 1u);
}

}  // namespace
}  // namespace tritonrl::ttir
