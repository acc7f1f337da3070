// Reports the ordering of Abseil's mutexes and notifications to ThreadSanitizer, because Debian's
// shared library is not instrumented. Each function here overrides the library's own and calls it.

#include <dlfcn.h>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}

namespace absl {
ABSL_NAMESPACE_BEGIN

namespace {

// The library's function of that mangled name, and its result.
template <typename Result, typename... Arguments>
Result Call(void** cached, const char* name, Arguments... arguments) {
  void* function = __atomic_load_n(cached, __ATOMIC_ACQUIRE);
  if (function == nullptr) {
    function = dlsym(RTLD_NEXT, name);
    __atomic_store_n(cached, function, __ATOMIC_RELEASE);
  }
  return reinterpret_cast<Result (*)(Arguments...)>(function)(arguments...);
}

}  // namespace

#define STRING_OF(x) #x
#define QUOTED(x) STRING_OF(x)
#define NAMESPACE_LENGTH "7"  // of debian3, the package's inline namespace
#define NEXT(result, constness, name, ...)                                                       \
  [&]() -> result {                                                                              \
    static void* cached = nullptr;                                                               \
    return Call<result>(&cached,                                                                 \
                        "_ZN" constness                                                          \
                        "4absl" NAMESPACE_LENGTH QUOTED(ABSL_OPTION_INLINE_NAMESPACE_NAME) name, \
                        this __VA_OPT__(, ) __VA_ARGS__);                                        \
  }()
#define DURATION "NS0_8DurationE"
#define TIME "NS0_4TimeE"
#define CONDITION "RKNS0_9ConditionE"

void Mutex::Lock() {
  NEXT(void, "", "5Mutex4LockEv");
  __tsan_acquire(this);
}
void Mutex::Unlock() {
  __tsan_release(this);
  NEXT(void, "", "5Mutex6UnlockEv");
}
bool Mutex::TryLock() {
  const bool locked = NEXT(bool, "", "5Mutex7TryLockEv");
  if (locked) __tsan_acquire(this);
  return locked;
}
void Mutex::ReaderLock() {
  NEXT(void, "", "5Mutex10ReaderLockEv");
  __tsan_acquire(this);
}
void Mutex::ReaderUnlock() {
  __tsan_release(this);
  NEXT(void, "", "5Mutex12ReaderUnlockEv");
}
void Mutex::LockWhen(const Condition& condition) {
  NEXT(void, "", "5Mutex8LockWhenE" CONDITION, &condition);
  __tsan_acquire(this);
}
void Mutex::Await(const Condition& condition) {
  __tsan_release(this);
  NEXT(void, "", "5Mutex5AwaitE" CONDITION, &condition);
  __tsan_acquire(this);
}
bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  __tsan_release(this);
  const bool holds =
      NEXT(bool, "", "5Mutex16AwaitWithTimeoutE" CONDITION DURATION, &condition, timeout);
  __tsan_acquire(this);
  return holds;
}
bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  __tsan_release(this);
  const bool holds =
      NEXT(bool, "", "5Mutex17AwaitWithDeadlineE" CONDITION TIME, &condition, deadline);
  __tsan_acquire(this);
  return holds;
}

// Whoever unlocks a mutex evaluates the conditions of those who wait, still under the lock.
bool Condition::Eval() const {
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  const bool holds = NEXT(bool, "K", "9Condition4EvalEv");
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  return holds;
}

void CondVar::Wait(Mutex* mutex) {
  __tsan_release(mutex);
  NEXT(void, "", "7CondVar4WaitEPNS0_5MutexE", mutex);
  __tsan_acquire(mutex);
}
bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  __tsan_release(mutex);
  const bool timed_out =
      NEXT(bool, "", "7CondVar16WaitWithDeadlineEPNS0_5MutexE" TIME, mutex, deadline);
  __tsan_acquire(mutex);
  return timed_out;
}

void Notification::Notify() {
  __tsan_release(this);
  NEXT(void, "", "12Notification6NotifyEv");
}
void Notification::WaitForNotification() const {
  NEXT(void, "K", "12Notification19WaitForNotificationEv");
  __tsan_acquire(const_cast<Notification*>(this));
}
bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  const bool notified =
      NEXT(bool, "K", "12Notification30WaitForNotificationWithTimeoutE" DURATION, timeout);
  if (notified) __tsan_acquire(const_cast<Notification*>(this));
  return notified;
}
bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  const bool notified =
      NEXT(bool, "K", "12Notification31WaitForNotificationWithDeadlineE" TIME, deadline);
  if (notified) __tsan_acquire(const_cast<Notification*>(this));
  return notified;
}

ABSL_NAMESPACE_END
}  // namespace absl
