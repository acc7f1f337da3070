// Student's t distribution, central and shifted, for intervals and for the power of t-tests.
#ifndef TRITONRL_EVAL_METRICS_STUDENT_T_H_
#define TRITONRL_EVAL_METRICS_STUDENT_T_H_

namespace tritonrl {

// The chance that |T| > t, for t >= 0 and `freedom` >= 1 degrees of freedom. Exact up to rounding.
double StudentTOutside(double t, int freedom);

// The t with StudentTOutside(t, freedom) = outside, in (0, 1).
double StudentTCritical(double outside, int freedom);

// The chance that |T| > t for the noncentral distribution, in which `shift` >= 0 is added to the
// normal variable: the power of a two-sided test with the critical value t. The absolute error is
// below 1e-6 for t that are critical at 0.001 and above.
double ShiftedStudentTOutside(double t, int freedom, double shift);

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_METRICS_STUDENT_T_H_
