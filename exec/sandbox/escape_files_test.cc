// Attempts at files of the host and the checker, and at the candidate that comes next.
#include "exec/sandbox/testing/escape_suite.h"

namespace tritonrl {
namespace {

// Ways that break the candidate's own run as well.
const std::vector<Outcome::Reason> kOwnHarm = {Outcome::OK, Outcome::RUNTIME_ERROR,
                                               Outcome::COMPILE_ERROR};

const std::vector<Attempt>& Attempts() {
  static const auto& attempts = *new std::vector<Attempt>{
      {"files", "read_world_readable_secret"},
      {"files", "read_past_the_root"},
      {"files", "walk_up_from_descriptors"},
      {"files", "open_by_handle"},
      {"files", "look_for_homes_and_passwords"},
      {"files", "overwrite_the_checker"},
      {"files", "overwrite_the_wheels"},
      {"files", "remount_writable"},
      {"files", "use_setuid_programs"},
      {"files", "make_device_nodes"},
      {"files", "open_devices"},
      {"files", "hard_link_the_secret"},
      {"files", "links_for_outputs", kOwnHarm},
      {"files", "cache_folder_with_dots", kOwnHarm},
      {"files", "fill_the_inodes"},
      {"files", "make_a_huge_file"},
      {"files", "lock_what_everybody_reads"},
      {"files", "watch_what_others_do"},
      {"leftovers", "poison_the_triton_cache", kOwnHarm},
      {"leftovers", "leave_python_hooks", kOwnHarm},
      {"leftovers", "leave_a_preload", kOwnHarm},
      {"leftovers", "break_every_module", {Outcome::EXITED}},
      {"leftovers", "scribble_on_shared_mappings", {Outcome::OK, Outcome::CRASHED}},
      {"leftovers", "leave_shared_memory"},
      {"leftovers", "leave_settings", kOwnHarm},
      {"leftovers", "raise_the_priority"},
      {"leftovers", "leave_marked_daemons"},
  };
  return attempts;
}

TRITONRL_ESCAPE_TESTS(Attempts());

}  // namespace
}  // namespace tritonrl
