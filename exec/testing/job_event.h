// An event between a test and the Python code of a job, in either direction. It is a file, so the
// job's pool must have no sandbox.
#ifndef TRITONRL_EXEC_TESTING_JOB_EVENT_H_
#define TRITONRL_EXEC_TESTING_JOB_EVENT_H_

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"

namespace tritonrl {

class JobEvent {
 public:
  JobEvent() {
    // In /tmp, which the job's user can reach; the test's own folder may be closed to it.
    char folder[] = "/tmp/tritonrl-job-event-XXXXXX";
    EXPECT_NE(mkdtemp(folder), nullptr);
    EXPECT_EQ(chmod(folder, 0777), 0);
    folder_ = folder;
  }
  ~JobEvent() { EXPECT_TRUE(RemoveTree(folder_).ok()); }
  JobEvent(const JobEvent&) = delete;
  JobEvent& operator=(const JobEvent&) = delete;

  void Notify() { EXPECT_TRUE(WriteFileAtomic(path(), "").ok()); }
  // Waits for the event; false after a minute.
  bool Wait() const {
    const absl::Time limit = absl::Now() + absl::Minutes(1);
    while (!FileExists(path()) && absl::Now() < limit) absl::SleepFor(absl::Milliseconds(2));
    return FileExists(path());
  }

  // Python expressions for Notify and Wait in a job of the fake runner.
  std::string PythonNotify() const { return absl::StrCat("notify('", path(), "')"); }
  std::string PythonWait() const { return absl::StrCat("wait('", path(), "')"); }

 private:
  std::string path() const { return JoinPath(folder_, "event"); }

  std::string folder_;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TESTING_JOB_EVENT_H_
