// The faults and the rare states that a simulation counts: each fault when it takes effect, and each rare state when a
// run reaches it. If a fault stopped occurring in all seeds, nobody would notice. So a test demands that each count is
// above 0 (sim_test.cc).
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
  kTrapSprung,  // a crash right before or right after a message is handled
  kPause,
  kLongPause,
  kClockJump,
  kTaskLeaves,
  kPsBesideSuccessor,
  kAbsence,  // tasks are away for longer than any time limit of the chief
  // Faults of links. A "long" fault lasts longer than the heartbeat timeout, and often longer than every timeout.
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
  kLent,  // a push whose payload is in memory that the worker shares with the ps
  // Faults of the shared disk, and hangs of the chief's own disk.
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
  // Faults of the chief's own disk, and how the journal's code handles them.
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
  kAllFloat64,
  kBothTypes,
  kSlots,
  kState,
  kAverage,
  kClipping,
  kInitFrom,
  kValuesAsked,       // a shard asks a worker for its first values
  kValuesAskedAgain,  // it asks another worker, or the same one on another channel
  kComputeWaited,     // a computation began before all of its parameters were there
  kRecomputed,
  kComputeDropped,
  kNonfiniteLoss,
  kNonfiniteGradient,
  kHugeGradient,
  kSkippedStep,
  // Work that takes longer than Timeouts::setup, or that is abandoned because a newer order came.
  kWorkerLacks,
  kLongData,
  kLongRestore,
  kRestoreLeft,
  // Clients.
  kClientSaves,
  kClientStops,
  kTimeoutChanged,
  // Evaluators.
  kEvaluators,             // the cluster has some
  kEvaluationInterrupted,  // one was lost or silent while it evaluated
  kFinishesEarly,
  kBestExported,
  // Happenings after another process has taken the shards of a ps that lives on.
  kFrameAtFormerOwner,
  // The chief refused a former process of a task for good, so the process ended.
  kFormerOwnerEnded,
  kCount
};

constexpr std::size_t kHappenings = static_cast<std::size_t>(Happening::kCount);
using Happenings = std::array<std::uint64_t, kHappenings>;

const char* to_string(Happening happening);

}  // namespace disttrain::sim
