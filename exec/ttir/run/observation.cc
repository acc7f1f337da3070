#include "exec/ttir/run/observation.h"

namespace tritonrl::ttir {

const char* FindingKindName(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::kUnwrittenRead:
      return "unwritten read";
    case Finding::Kind::kDivisionByZero:
      return "division by zero";
    case Finding::Kind::kWideShift:
      return "wide shift";
    case Finding::Kind::kDivisibility:
      return "divisibility";
    case Finding::Kind::kRace:
      return "race";
    case Finding::Kind::kOutsideView:
      return "outside of the view";
    case Finding::Kind::kDescriptor:
      return "descriptor";
    case Finding::Kind::kHistogram:
      return "outside of the histogram";
  }
  return "finding";
}

}  // namespace tritonrl::ttir
