// What a simulation counts: each fault that took effect, and each rare state that a seed reached. A fault that no seed
// has any more would go unnoticed, so a test demands that no count stays at 0 (sim_test.cc).
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
  // Links. A long fault outlasts the heartbeat timeout, often every timeout.
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
  // Faults of the chief's own disk, and how the journal handles them.
  kJournalPowerLost,
  kJournalTorn,
  kJournalMended,
  kJournalFlipped,
  kJournalCut,  // cut short, emptied or removed
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
  // Work that takes longer than Timeouts::setup, or that is given up for a newer order.
  kLongData,
  kLongRestore,
  kRestoreLeft,
  // Clients.
  kClientSaves,
  kClientStops,
  kTimeoutChanged,
  // Former owners of shards.
  kFrameAtFormerOwner,  // a ps applied a frame while its successor had the shard in a newer generation
  kFormerOwnerEnded,    // a process whose successor has its place was refused, and ended
  kCount
};

constexpr std::size_t kHappenings = static_cast<std::size_t>(Happening::kCount);
using Happenings = std::array<std::uint64_t, kHappenings>;

const char* to_string(Happening happening);

}  // namespace disttrain::sim
