// A test fixture with one native backend for all tests of a suite, because its start takes seconds.
#ifndef TRITONRL_EXEC_TESTING_NATIVE_SUITE_H_
#define TRITONRL_EXEC_TESTING_NATIVE_SUITE_H_

#include <gtest/gtest.h>

#include "exec/backend/backend_factory.h"

namespace tritonrl {

class NativeSuite : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto backend = StartNativeBackend(WorkerPoolOptions());
    ASSERT_TRUE(backend.ok()) << backend.status();
    backend_ = backend->release();
  }
  static void TearDownTestSuite() {
    delete backend_;
    backend_ = nullptr;
  }
  void SetUp() override { ASSERT_NE(backend_, nullptr); }

  static inline LocalBackend* backend_ = nullptr;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TESTING_NATIVE_SUITE_H_
