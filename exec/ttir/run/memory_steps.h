// Loads, stores and atomic operations. Each access is checked against the memory of the argument
// that its pointer comes from, before memory is touched.
#ifndef TRITONRL_EXEC_TTIR_RUN_MEMORY_STEPS_H_
#define TRITONRL_EXEC_TTIR_RUN_MEMORY_STEPS_H_

#include <cstdint>

#include "exec/ttir/enums.h"
#include "exec/ttir/run/step.h"

namespace tritonrl::ttir {

// How a load or a store goes between memory and lanes.
struct AccessData : StepData {
  const char* name = "load";  // in messages
  int bytes = 0;              // of an element in memory
  int lane_bytes = 0;
  int64_t row = 1;           // this many elements may be neighbours in memory
  int64_t repeat = 1;        // elements of the tensor that each one stands for
  int shape = 0;             // a number for the tensor's shape, without dimensions of size 1
  Unary convert = nullptr;   // decodes what is loaded or encodes what is stored
  Ternary select = nullptr;  // puts in `other` where the mask is off
  bool one_other = false;    // `other` is one element for all
  const KernelSet* kernels = nullptr;
};

// in: pointers, mask or none, other or none; out: values, raw values if they are converted.
bool RunLoad(const Step& step, Program& program);
// in: pointers, values, mask or none; out: raw values if they are converted.
bool RunStore(const Step& step, Program& program);

struct AtomicData : StepData {
  AtomicKind kind = AtomicKind::kAdd;
  ScalarKind element = ScalarKind::kI32;
  bool is_pointer = false;
  int bytes = 0;
  int shape = 0;  // as AccessData::shape
  MemorySemantic semantic = MemorySemantic::kRelaxed;
  MemoryScope scope = MemoryScope::kGpu;
};

// tt.atomic_rmw; in: pointers, values, mask or none; out: old values. tt.atomic_cas; in: pointers,
// expected, desired; out: old values. Elements go one after the other. A masked element's old value
// is 0.
bool RunAtomic(const Step& step, Program& program);
bool RunCompareAndSwap(const Step& step, Program& program);

// Whether the active elements are aligned and inside; ends the program if not.
bool CheckAccess(const Step& step, Program& program, const char* name, const int64_t* pointers,
                 const uint8_t* mask, int64_t count, int bytes, const KernelSet& kernels);

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_MEMORY_STEPS_H_
