#include "exec/defences/defences.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

namespace tritonrl {
namespace {

std::map<std::string, Defence> Probe(SandboxKind kind) {
  const auto defences = ProbeDefences(kind, "interpreter");
  EXPECT_TRUE(defences.ok()) << defences.status();
  std::map<std::string, Defence> by_name;
  if (!defences.ok()) return by_name;
  for (const Defence& defence : *defences) by_name[defence.name] = defence;
  return by_name;
}

TEST(DefencesTest, BubblewrapHasAllOfThem) {
  for (const auto& [name, defence] : Probe(SandboxKind::kBubblewrap)) {
    if (name == "memory") continue;                  // depends on the host's cgroups
    if (name == "user" && geteuid() != 0) continue;  // the same user as ours then
    EXPECT_TRUE(defence.in_force) << name << ": " << defence.how;
  }
}

TEST(DefencesTest, WithoutASandboxItSaysWhatIsMissing) {
  const std::map<std::string, Defence> found = Probe(SandboxKind::kNone);
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
