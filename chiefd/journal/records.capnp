# The schema of all records of the chief's journal. The matching C++ values are in chiefd/core/journal_state.h, which
# also says what the records mean. codec.h converts between the two and checks ranges.
#
# Versions: new fields and records go to the end, and no number is ever changed or reused. A reader skips a field that
# it doesn't know, and refuses a record that it doesn't know. If you add a field that an older chief must not skip,
# raise kJournalVersion (codec.h).
@0xb7c3f2a94d1e6058;

using Cxx = import "/capnp/c++.capnp";
using Wire = import "/transport/wire/protocol.capnp";
$Cxx.namespace("disttrain::chiefd::schema");

struct Record {
  union {
    none @0 :Void;  # A message whose bytes are all 0 reads as this kind, so readers refuse it.
    term @1 :Term;
    submitted @2 :Submitted;
    state @3 :State;
    described @4 :Wire.JobDescribed;
    generation @5 :GenerationOfJob;
    training @6 :TrainingOfJob;
    roster @7 :RosterOfJob;
    grant @8 :Grant;
    openGrants @9 :OpenGrants;
    checkpoint @10 :Checkpoint;
    event @11 :Event;
    end @12 :End;
    evaluations @13 :Evaluations;
  }
}

# A chief has started.
struct Term {
  journal @0 :UInt64;
  term @1 :UInt64;
  chief @2 :UInt64;  # its incarnation
}

struct Submitted {
  job @0 :UInt32;
  name @1 :Text;
  toml @2 :Text;
  warmupSteps @3 :UInt64;
  awaitedWorkers @4 :UInt32;
  resubmitOf @5 :UInt32;  # a job's number; 0: none
  resubmits @6 :UInt32;
}

enum JobState { queued @0; starting @1; running @2; paused @3; evaluating @4; stopping @5; finished @6; failed @7; stopped @8; }

struct State {
  job @0 :UInt32;
  state @1 :JobState;
  reason @2 :Text;
}

# The totals from which the chief computes a job's rates.
struct Training {
  time @0 :Int64;  # nanoseconds
  steps @1 :UInt64;
  examples @2 :UInt64;
}

# A generation begins.
struct GenerationOfJob {
  job @0 :UInt32;
  generation @1 :UInt64;
  mark @2 :UInt64;
  owners @3 :List(Wire.Owner);
  roster @4 :Wire.Roster;
  restorePath @5 :Text;  # "": initial values
  restoreStep @6 :UInt64;
  recoveries @7 :UInt32;
  before @8 :Training;
  initPath @9 :Text;  # "": drawn
  places @10 :UInt32;
  hasSmallBuckets @11 :Bool;
}

# The generation trains.
struct TrainingOfJob {
  job @0 :UInt32;
  generation @1 :UInt64;
}

struct RosterOfJob {
  job @0 :UInt32;
  generation @1 :UInt64;
  roster @2 :Wire.Roster;
}

struct Grant {
  job @0 :UInt32;
  generation @1 :UInt64;
  lease @2 :Wire.Lease;
  borrowers @3 :List(Wire.Member);
}

struct OpenGrants {
  job @0 :UInt32;
  generation @1 :UInt64;
  open @2 :List(UInt64);
}

struct Checkpoint {
  job @0 :UInt32;
  generation @1 :UInt64;
  step @2 :UInt64;
  path @3 :Text;
}

struct Event {
  wallNanoseconds @0 :Int64;
  uptimeNanoseconds @1 :Int64;
  job @2 :UInt32;
  kind @3 :Text;
  task @4 :Text;
  step @5 :UInt64;
  text @6 :Text;
  cause @7 :Text;
}

struct Evaluation {
  step @0 :UInt64;
  loss @1 :Float64;
  # Retired: an evaluation had one metric, its accuracy, or none. A reader takes it for a metric named "accuracy".
  hasAccuracy @2 :Bool;
  accuracy @3 :Float64;
  examples @4 :UInt64;
  final @5 :Bool;
  parametersHash @6 :UInt64;
  metrics @7 :List(Wire.Metric);
}

struct RootCause {
  role @0 :Wire.Role;
  index @1 :UInt32;
  reason @2 :Text;
}

struct End {
  job @0 :UInt32;
  state @1 :JobState;  # finished, failed or stopped
  reason @2 :Text;
  generation @3 :UInt64;
  step @4 :UInt64;
  stepsTarget @5 :UInt64;
  examples @6 :UInt64;
  training @7 :Training;
  epochs @8 :UInt32;
  late @9 :UInt64;
  skipped @10 :UInt64;
  staleness @11 :Float64;
  hasLoss @12 :Bool;
  loss @13 :Float64;
  evaluation @14 :Evaluation;  # may be absent
  hasCode @15 :Bool;
  code @16 :Wire.ErrorCode;
  rootCause @17 :RootCause;  # may be absent
  metrics @18 :List(Wire.Metric);  # of the training
}

struct KeptCheckpoint {
  generation @0 :UInt64;
  step @1 :UInt64;
  path @2 :Text;
}

struct BestCheckpoint {
  checkpoint @0 :KeptCheckpoint;
  value @1 :Float64;
}

# What the chief knows of a job's evaluations. Replaces the record before.
struct Evaluations {
  job @0 :UInt32;
  newest @1 :Evaluation;  # may be absent
  evaluated @2 :List(KeptCheckpoint);
  best @3 :List(BestCheckpoint);
  hasBestValue @4 :Bool;
  bestValue @5 :Float64;
  bestStep @6 :UInt64;
  counted @7 :UInt64;
  withoutProgress @8 :UInt32;
  exported @9 :Text;
  earlyEnd @10 :Text;
}
