// The ids could also be computed as a hash of the kind, but then nobody could find the kind of an id by searching the
// source.
#include "common/daemon/log/message_ids.h"

#include <algorithm>

namespace disttrain::daemon {

namespace {

constexpr MessageId kMessageIds[] = {
    {"starting", "005a13756c414e78ae2e20ab05697351"},
    {"running", "ddb6cd8bddc440779a12b76b705fa292"},
    {"paused", "167d6451baac4eec93c0aeeee0a0a135"},
    {"evaluating", "55678cee82c74c4f910f95cae4154c7f"},
    {"stopping", "b53602d89f514ccda44ecd06ff907af0"},
    {"finished", "0e3e231a5b0f41e2bcacae90016c5981"},
    {"failed", "0bc6d50c661e4e7faf2142a52500633b"},
    {"stopped", "2518cba5bdaf45d299094602cf3f6b02"},
    {"chief_started", "cde80347be514aceab7f60024bc39d2c"},
    {"task_joined", "b77224c9aea94e5c94ad7a1483800087"},
    {"task_silent", "e83365a48d88490193e71de5683606ba"},
    {"task_returned", "db0dfd910faa492d9182a1d92a4ad43d"},
    {"task_lost", "d6c62e745e7b400ab44eb88499c340c1"},
    {"task_leaves", "edc91c5be4614dd09f1fa7de8ea6a983"},
    {"task_left", "0c0e8b1ba75c47a189065843c4dddcd2"},
    {"worker_left", "ccccb391d66b4d7aa92a0314968006ac"},
    {"worker_lost", "b458152e4af74673a8052de798d90442"},
    {"worker_joined", "20bfa3345a4a4831894a82e214f4b4cd"},
    {"link_lost", "cec44c5e3ddc422dbe1b00dc5cf35a8f"},
    {"link_back", "9b88040b8ae94a18959d60a97cede6d9"},
    {"loss_counted", "c37b9d7188d04789851dea12799e7984"},
    {"rolls_back", "7f0c5a3d9e214b06b8f1d2c4a6e83b57"},
    {"lost_at_start", "c328b567291446438f06e34ec6016a60"},
    {"worker_refused", "e26766597def4ae2bdea3e7e3108e81a"},
    {"restored", "9e6322e0a28c4f7e97eb18e3d0f3b6d2"},
    {"warm_start", "1a793246aa22411db621e55efebb3aea"},
    {"rolled_back", "152c2a00263c4e288da73d92d32112df"},
    {"taken_up", "e56541aa2956468bb1d2d660c697aa80"},
    {"reclaimed", "fb6d745007964b48b2306189a5fc45ce"},
    {"checkpoint", "940e2c6d106e45ccb18d1bfe9702323e"},
    {"checkpoint_failed", "165248a254d3429b99536211c4ec11e9"},
    {"checkpoint_retention", "9b176ccfbd594885936356179a0c909f"},
    {"checkpoint_program", "5e0b6c1f4a9d4e6f8d27b1c3a0f59e42"},
    {"checkpoint_broken", "53a6b8af5c534513b0d13227ed86bf5b"},
    {"trace_written", "3f1a6c0e8d5b4b7fa2c94e17d06b835c"},
    {"trace_failed", "b84d27e1c6f9450ea3178f5d2c0e9a64"},
    {"evaluation_interrupted", "38bfac11b8d8469aa160d7bf07c57c31"},
    {"evaluation_failed", "dfe37614a83c46a89a6a9182b02985b8"},
    {"best_exported", "8933cca06cf54961a8ecea2fb95c867f"},
    {"best_export_failed", "79697f567dbd47dca800e1b1d6a6dec2"},
    {"still_waiting", "4c1f6d2e8ab94f0793d5e07b26a8c314"},
    {"resubmitted", "b3e90a7755d24c1e8f6ac2d1904b7e68"},
    {kCrashed, "c81723686d0540d0b346bc88321131a8"},
    {kEnded, "27c8dea04d7f4a53b013451116c62272"},
    {kReloaded, "905197d25e3342c0860ff67388996cd2"},
    {kReloadRefused, "c06ced267feb4c4193a98583b5503ee3"},
};

}  // namespace

std::span<const MessageId> message_ids() {
  return kMessageIds;
}

const char* message_id_of(const std::string& kind) {
  const auto* const found = std::find_if(std::begin(kMessageIds), std::end(kMessageIds),
                                         [&kind](const MessageId& m) { return kind == m.kind; });
  return found == std::end(kMessageIds) ? "" : found->id;
}

}  // namespace disttrain::daemon
