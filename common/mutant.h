// Mutants are bugs that are planted on purpose, to prove that the simulator finds them. tests/sim/mutants.cc describes
// each mutant. They exist only in a second build of the code, with DISTTRAIN_MUTANTS. Only the simulator's test of the
// mutants uses that build. In all other builds DISTTRAIN_MUTANT(...) is the constant false.
#pragma once

#ifdef DISTTRAIN_MUTANTS

namespace disttrain {

enum class Mutant {
  kNone,
  // psd
  kNoDeduplication,
  kShortDeduplicationKey,
  kNoIncarnation,
  kNoFence,
  kEarlyAcknowledgement,
  kParticipantsPerShard,
  kStaleStagedAccepted,
  kVoidPushesCount,
  kLatePushVisits,
  kLooseBound,
  kLostConnectionFreesOthers,
  kCutAtFirstMark,
  kCutBeforeCommitCounts,
  kHoldForgotten,
  kValuesNotAwaited,
  kMeanOfMeans,
  kRestoredLedgerLost,
  kVetoPerShard,
  kClipPerShard,
  kSlotsNotRestored,
  kInitIgnored,
  kStateOfAnyRank,
  kStateInNorm,
  kStateScaled,
  kLowestRankIgnored,
  kDoublesRounded,
  kLentForEver,
  kOverflowUnseen,
  // chiefd
  kTermNotDurable,
  kGenerationNotDurable,
  kRosterNotDurable,
  kGrantNotDurable,
  kRestartUnseen,
  kClaimDisplaces,
  kLentBeforeFence,
  kLatePsLost,
  kWholeLeaseGivenBack,
  kCursorOfAnotherStep,
  kOldGenerationHeard,
  kNoRollbackOfSurvivors,
  kGenerationNotRaised,
  kGrantForgotten,
  kAcceptedBeforeDurable,
  kEvaluatedWhenOrdered,
  kEvaluationCountedAgain,
  kPinForgotten,
  // workerd
  kMixedVersions,
  kFinalTooEarly,
  kArrivalAssumed,
  // checkpoints
  kFilesNotSynced,
  kCommitNotSynced,
  kLastOneRemoved,
  kNewestByStep,
  kDamageUnseen,
  // transport
  kRecordsLostOnTheWire,
  // the chief's journal
  kJournalEndNotCopied,
  kJournalDamageIsCut,
  kJournalMarkUnread,
  kJournalNameNotSynced,
  kTwoChiefsOfOneTerm,
  kOwnOrderForgotten,
};

inline Mutant planted_mutant = Mutant::kNone;

}  // namespace disttrain

#define DISTTRAIN_MUTANT(name) (::disttrain::planted_mutant == ::disttrain::Mutant::name)
#else
#define DISTTRAIN_MUTANT(name) false
#endif
