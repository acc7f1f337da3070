// The attempts to escape from the sandbox with their permitted outcomes. Each attempt is one
// function in testing/escapes.
#include "exec/sandbox/cgroup.h"
#include "exec/sandbox/testing/escape_suite.h"

namespace tritonrl {
namespace {

// For attempts that can break the candidate's own run as well.
const std::vector<Outcome::Reason> kFilesOwnHarm = {Outcome::OK, Outcome::RUNTIME_ERROR,
                                                    Outcome::COMPILE_ERROR};
// For attempts that say what the executor cannot understand, or more than it is asked for.
const std::vector<Outcome::Reason> kNonsense = {Outcome::OK, Outcome::RUNTIME_ERROR,
                                                Outcome::BAD_RESULT};
// For attempts that close the job's channel: the supervisor notices it, or the job reaches its time
// limit.
const std::vector<Outcome::Reason> kSilent = {Outcome::TIMEOUT, Outcome::BAD_RESULT};
const std::vector<Outcome::Reason> kTime = {Outcome::TIMEOUT};
const std::vector<Outcome::Reason> kRefused = {Outcome::MISMATCH, Outcome::RUNTIME_ERROR,
                                               Outcome::BAD_RESULT, Outcome::EXITED,
                                               Outcome::RUNTIME_COMPUTE};

// For attempts that fill memory that belongs to no process. Without a memory cgroup only the time
// limit stops them.
std::vector<Outcome::Reason> WhenFull() {
  const bool limited =
      WorkerCgroup::Create("probe", {.memory_bytes = int64_t{1} << 30}).limits_memory();
  if (limited) return {Outcome::OUT_OF_MEMORY};
  return {Outcome::OUT_OF_MEMORY, Outcome::TIMEOUT, Outcome::RUNTIME_ERROR};
}

const std::vector<Attempt>& Attempts() {
  static const auto& attempts = *new std::vector<Attempt>{
      // Files of the host and of the checker, and files left for the next candidate.
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
      {"files", "links_for_outputs", kFilesOwnHarm},
      {"files", "cache_folder_with_dots", kFilesOwnHarm},
      {"files", "fill_the_inodes"},
      {"files", "make_a_huge_file"},
      {"files", "lock_what_everybody_reads"},
      {"files", "watch_what_others_do"},
      {"leftovers", "poison_the_triton_cache", kFilesOwnHarm},
      {"leftovers", "leave_python_hooks", kFilesOwnHarm},
      {"leftovers", "leave_a_preload", kFilesOwnHarm},
      {"leftovers", "break_every_module", {Outcome::EXITED}},
      {"leftovers", "scribble_on_shared_mappings", {Outcome::OK, Outcome::CRASHED}},
      {"leftovers", "leave_shared_memory"},
      {"leftovers", "leave_settings", kFilesOwnHarm},
      {"leftovers", "raise_the_priority"},
      {"leftovers", "leave_marked_daemons"},
      // The kernel and the network.
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
      // The socket that a job shares with the executor, and pages that all share.
      {"memory", "find_memory_of_tensors"},
      {"memory", "a_child_that_talks_too", kNonsense},
      {"memory", "write_to_pages_of_read_only_files"},
      {"memory", "flood_the_executor", {Outcome::BAD_RESULT}},
      {"memory", "close_the_channel_and_stay", kSilent, 2},
      {"memory", "shut_the_channel_down_and_stay", kSilent, 2},
      // Other processes, and running beyond the time limit.
      {"processes", "signal_everybody"},
      {"processes", "signal_by_descriptor"},
      {"processes", "signal_by_ownership"},
      {"processes", "trace_everybody"},
      {"processes", "write_memory_of_everybody"},
      {"processes", "read_proc_of_everybody"},
      {"processes", "write_to_the_workers_descriptors"},
      {"processes", "stop_itself", kTime, 2},
      {"processes", "stop_in_a_child_that_holds_everything", kTime, 2},
      {"processes", "thread_bomb", {Outcome::OK, Outcome::PROCESS_LIMIT}},
      // OK: all shells can reach the process limit and end before the candidate does.
      {"processes",
       "shell_fork_bomb",
       {Outcome::OK, Outcome::PROCESS_LIMIT, Outcome::OUT_OF_MEMORY, Outcome::TIMEOUT},
       2},
      {"processes", "timer_signal", {Outcome::CRASHED}},
      {"processes", "timers_without_end", kTime, 2},
      {"processes", "own_signal_stack_and_overflow", kTime, 2},
      {"processes", "recursion_without_limit", {Outcome::CRASHED}},
      {"processes", "become_another_program", {Outcome::EXITED}},
      {"processes", "raise_the_limits"},
      {"processes", "not_the_first_to_be_killed", {Outcome::OUT_OF_MEMORY}, 10, 10, true},
      {"processes", "close_every_descriptor", {Outcome::EXITED, Outcome::BAD_RESULT}},
      {"processes", "a_core_dump", {Outcome::CRASHED}},
      {"processes", "many_terminals"},
      {"processes", "signal_by_other_calls"},
      {"processes", "names_that_confuse_proc"},
      {"processes", "a_program_from_memory", {Outcome::BAD_RESULT, Outcome::EXITED}},
      {"processes", "a_parent_that_waits_for_its_copy", kTime, 2},
      {"processes", "a_thousand_zombies", {Outcome::OK, Outcome::PROCESS_LIMIT}},
      {"processes", "first_in_every_queue"},
      // The host's memory and other finite resources.
      {"resources", "shared_anonymous_memory", WhenFull(), 5, 10, true},
      {"resources", "memory_files", WhenFull(), 5, 10, true},
      {"resources",
       "memory_files_in_large_pages",
       {Outcome::OK, Outcome::CRASHED, Outcome::OUT_OF_MEMORY}},
      {"resources", "private_memory_piece_by_piece"},
      {"resources", "stacks_and_locks"},
      {"resources", "full_pipes", {Outcome::OK, Outcome::OUT_OF_MEMORY}, 10, 10, true},
      {"resources", "socket_buffers", {Outcome::OK, Outcome::OUT_OF_MEMORY}, 10, 10, true},
      {"resources", "page_cache"},
      {"resources", "timers_and_watches"},
      {"resources", "memory_of_many_processes", WhenFull(), 10, 10, true},
      {"resources", "a_flood_of_timers"},
      {"resources", "signals_that_wait"},
      {"resources", "huge_arguments", {Outcome::OK, Outcome::OUT_OF_MEMORY}, 10, 10, true},
      {"resources", "attributes_of_files", {Outcome::OK, Outcome::OUT_OF_MEMORY}, 10, 10, true},
      // Wrong kernels that forge a verdict.
      {"verdicts", "print_a_verdict", {Outcome::MISMATCH}},
      {"verdicts", "write_a_verdict_to_every_descriptor", kRefused},
      {"verdicts", "write_a_verdict_and_exit", kRefused},
      {"verdicts", "a_child_writes_the_verdict", kRefused},
      {"verdicts", "exit_from_a_thread", {Outcome::EXITED}},
      {"verdicts", "exit_at_exit", kRefused},
      {"verdicts", "patch_the_comparison", kRefused},
      {"verdicts", "return_the_expected_output", kRefused},
      {"verdicts", "read_the_reference", kRefused},
      {"verdicts", "a_result_of_another_shape", kRefused},
      {"verdicts", "a_result_that_is_computed_when_compared", kRefused},
  };
  return attempts;
}

TRITONRL_ESCAPE_TESTS(Attempts());

}  // namespace
}  // namespace tritonrl
