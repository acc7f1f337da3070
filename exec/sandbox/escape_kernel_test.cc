// Attempts at the kernel and at the network.
#include "exec/sandbox/testing/escape_suite.h"

namespace tritonrl {
namespace {

const std::vector<Attempt>& Attempts() {
  static const auto& attempts = *new std::vector<Attempt>{
      {"kernel", "read_the_supervisors_keys"},
      {"kernel", "leave_keys"},
      {"kernel", "nested_user_namespace"},
      {"kernel", "enter_the_namespaces_of_init"},
      {"kernel", "control_groups"},
      {"kernel", "large_parts_of_the_kernel"},
      {"kernel", "modules_and_boot"},
      {"kernel", "magic_system_request"},
      {"kernel", "kernel_settings"},
      {"kernel", "change_the_clock"},
      {"kernel", "change_the_host_name"},
      {"kernel", "kernel_log"},
      {"kernel", "type_into_a_terminal"},
      {"kernel", "other_personality"},
      {"kernel", "numbers_of_a_32_bit_program", {Outcome::CRASHED}},
      {"kernel", "numbers_of_x32", {Outcome::CRASHED}},
      {"kernel", "calls_of_tomorrow"},
      {"kernel", "a_filter_of_ones_own"},
      {"kernel", "a_notifier_of_ones_own"},
      {"kernel", "calls_with_the_number_of_another"},
      {"kernel", "every_option_of_prctl"},
      {"network", "connect_over_tcp"},
      {"network", "send_over_udp"},
      {"network", "connect_to_abstract_sockets"},
      {"network", "connect_to_sockets_by_path"},
      {"network", "netlink_to_the_kernel"},
      {"network", "vsock_to_the_host"},
      {"network", "raw_packets"},
      {"network", "every_other_family"},
      {"network", "listen_for_the_next_candidate"},
      {"network", "pass_descriptors_around"},
  };
  return attempts;
}

TRITONRL_ESCAPE_TESTS(Attempts());

}  // namespace
}  // namespace tritonrl
