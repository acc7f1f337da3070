#include "exec/host_check/confinement_probe.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

namespace tritonrl {
namespace {

std::map<std::string, ConfinementCheck> Probe(SandboxKind kind) {
  const auto checks = ProbeConfinement(kind, "cpu");
  EXPECT_TRUE(checks.ok()) << checks.status();
  std::map<std::string, ConfinementCheck> by_name;
  if (!checks.ok()) return by_name;
  for (const ConfinementCheck& check : *checks) by_name[check.name] = check;
  return by_name;
}

TEST(DefencesTest, BubblewrapHasAllOfThem) {
  for (const auto& [name, check] : Probe(SandboxKind::kBubblewrap)) {
    if (name == "memory") continue;                  // depends on the host's cgroups
    if (name == "user" && geteuid() != 0) continue;  // candidates then run as the test's user
    EXPECT_TRUE(check.in_force) << name << ": " << check.how;
  }
}

TEST(DefencesTest, WithoutASandboxItSaysWhatIsMissing) {
  const std::map<std::string, ConfinementCheck> found = Probe(SandboxKind::kNone);
  ASSERT_EQ(found.count("mount namespace"), 1u);
  for (const char* name :
       {"user namespace", "mount namespace", "process namespace", "IPC namespace", "no network"}) {
    EXPECT_FALSE(found.at(name).in_force) << name;
  }
  for (const char* name : {"system calls", "no new rights", "no core dumps", "kernel queues",
                           "descriptors", "environment"}) {
    EXPECT_TRUE(found.at(name).in_force) << name << ": " << found.at(name).how;
  }
  // A user who is not root cannot empty the bounding set.
  if (geteuid() == 0) {
    EXPECT_TRUE(found.at("no capabilities").in_force);
  }
}

}  // namespace
}  // namespace tritonrl
