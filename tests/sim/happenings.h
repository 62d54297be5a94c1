// What a simulation counts: each fault that took effect, and each rare place that a story reached. A fault that no seed
// makes any more is a hole that nobody sees, so a test demands that none stays at 0 (sim_test.cc).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace disttrain::sim {

enum class Happening : std::uint8_t {
  // Processes.
  kCrash,
  kHostLost,
  kTrapSprung,  // a crash right before or after a message
  kPause,
  kLongPause,
  kClockJump,
  kTaskLeaves,
  kPsBesideSuccessor,
  // Links. A long one outlasts the heartbeat timeout, often every timeout.
  kConnectionCut,
  kLateBreak,
  kLostHello,
  kPartition,
  kLongIsolation,
  kLongOneWay,
  kLongSplit,
  kLongChiefFromPs,
  kLongChiefFromWorker,
  kLongPsFromPs,
  kLongWorkerFromPs,
  kLongHalfFromPs,
  kMessageHeldBack,
  // The shared disk and the chief's own.
  kDiskSlow,
  kDiskFull,
  kWriteFailed,
  kSyncFailed,
  kSyncLied,
  kPowerLost,
  kFolderUnreadable,
  kFolderAway,
  kFolderUnmounted,
  kCheckpointDamaged,
  kDiskHung,
  kJournalSlow,
  kJournalHung,
  // What the chief's own disk does to its journal, and what becomes of that.
  kJournalPowerLost,
  kJournalTorn,
  kJournalMended,
  kJournalFlipped,
  kJournalCut,  // in its midst, wholly, or gone
  kJournalDamageTold,
  kJournalFull,
  kJournalRewritePutOff,
  kJournalFailed,
  kSecondChiefOnFolder,
  kCopiedChiefMet,
  kWallClockSetBack,
  kWallClockSetForward,
  // Jobs.
  kSlots,
  kClipping,
  kInitFrom,
  kNonfiniteLoss,
  kNonfiniteGradient,
  kSkippedStep,
  // Longer than Timeouts::setup, or left for a newer order.
  kLongData,
  kLongRestore,
  kRestoreLeft,
  // Clients.
  kClientSaves,
  kClientStops,
  kTimeoutChanged,
  // Places.
  kFrameAtFormerOwner,  // a ps applied a frame while its successor had the shard in a newer generation
  kFormerOwnerEnded,    // and ended when it heard of it
  kCount
};

constexpr std::size_t kHappenings = static_cast<std::size_t>(Happening::kCount);
using Happenings = std::array<std::uint64_t, kHappenings>;

const char* to_string(Happening happening);

}  // namespace disttrain::sim
