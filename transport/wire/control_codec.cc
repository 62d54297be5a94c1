// The codec of ControlMessage. A ControlMessage holds one message; this file encodes and decodes the message's type.
// job_codec.cc, report_codec.cc, checkpoint_codec.cc and client_codec.cc have the codecs of the messages' contents.
#include "transport/wire/control_messages.h"

namespace disttrain::wire {
namespace {

struct WriteBody {
  schema::ControlMessage::Builder b;

  void operator()(const DescribeJob& m) { write(m, b.initDescribeJob()); }
  void operator()(const JobDescribed& m) { write(m, b.initJobDescribed()); }
  void operator()(const CreateShards& m) { write(m, b.initCreateShards()); }
  void operator()(const ShardsCreated& m) { write(m, b.initShardsCreated()); }
  void operator()(const OpenJob& m) { write(m, b.initOpenJob()); }
  void operator()(const JobOpened& m) { write(m, b.initJobOpened()); }
  void operator()(const StartJob& m) { write(m, b.initStartJob()); }
  void operator()(const SetRoster& m) { write(m, b.initSetRoster()); }
  void operator()(const RosterApplied& m) { write(m, b.initRosterApplied()); }
  void operator()(const FenceWorker& m) { write(m, b.initFenceWorker()); }
  void operator()(const WorkerFenced& m) { write(m, b.initWorkerFenced()); }
  void operator()(const LeaseRequest& m) { write(m, b.initLeaseRequest()); }
  void operator()(const LeaseGrant& m) { write(m, b.initLeaseGrant()); }
  void operator()(const WorkerFinished& m) { write(m, b.initWorkerFinished()); }
  void operator()(const StopJob& m) { write(m, b.initStopJob()); }
  void operator()(const SetEvaluator& m) { write(m, b.initSetEvaluator()); }
  void operator()(const Evaluate& m) { write(m, b.initEvaluate()); }
  void operator()(const Evaluated& m) { write(m, b.initEvaluated()); }
  void operator()(const CloseJob& m) { write(m, b.initCloseJob()); }
  void operator()(const JobClosed& m) { write(m, b.initJobClosed()); }
  void operator()(const TaskFailed& m) { write(m, b.initTaskFailed()); }
  void operator()(const Accusation& m) { write(m, b.initAccusation()); }
  void operator()(const Heartbeat& m) { write(m, b.initHeartbeat()); }
  void operator()(const HeartbeatAnswer& m) { write(m, b.initHeartbeatAnswer()); }
  void operator()(const LogLines& m) { write(m, b.initLogLines()); }
  void operator()(const SubmitJob& m) { write(m, b.initSubmitJob()); }
  void operator()(const JobSubmitted& m) { write(m, b.initJobSubmitted()); }
  void operator()(const StatusRequest& m) { write(m, b.initStatusRequest()); }
  void operator()(const StatusAnswer& m) { write(m, b.initStatusAnswer()); }
  void operator()(const StopRequest& m) { write(m, b.initStopRequest()); }
  void operator()(const RequestDone&) { b.setRequestDone(); }
  void operator()(const LogsRequest& m) { write(m, b.initLogsRequest()); }
  void operator()(const Refused& m) { write(m, b.initRefused()); }
  void operator()(const PauseJob& m) { write(m, b.initPauseJob()); }
  void operator()(const PrepareCheckpoint& m) { write(m, b.initPrepareCheckpoint()); }
  void operator()(const CheckpointPrepared& m) { write(m, b.initCheckpointPrepared()); }
  void operator()(const TakeCut& m) { write(m, b.initTakeCut()); }
  void operator()(const MarkChannels& m) { write(m, b.initMarkChannels()); }
  void operator()(const AbandonCheckpoint& m) { write(m, b.initAbandonCheckpoint()); }
  void operator()(const ShardWritten& m) { write(m, b.initShardWritten()); }
  void operator()(const CheckpointFailed& m) { write(m, b.initCheckpointFailed()); }
  void operator()(const SaveRequest& m) { write(m, b.initSaveRequest()); }
  void operator()(const ResubmitRequest& m) { write(m, b.initResubmitRequest()); }
  void operator()(const CheckpointSaved& m) { write(m, b.initCheckpointSaved()); }
  void operator()(const EventsRequest& m) { write(m, b.initEventsRequest()); }
  void operator()(const EventsAnswer& m) { write(m, b.initEventsAnswer()); }
  void operator()(const LeaveRequest&) { b.setLeaveRequest(); }
  void operator()(const LeaveGranted&) { b.setLeaveGranted(); }
  void operator()(const CheckpointRequest& m) { write(m, b.initCheckpointRequest()); }
  void operator()(const TraceEvents& m) { write(m, b.initTraceEvents()); }
  void operator()(const EvaluateCheckpoint& m) { write(m, b.initEvaluateCheckpoint()); }
  void operator()(const EvaluationFailed& m) { write(m, b.initEvaluationFailed()); }
};

// Long because it is a table.
ControlMessage read_body(schema::ControlMessage::Reader r) {
  using Which = schema::ControlMessage::Which;
  switch (r.which()) {
    case Which::DESCRIBE_JOB:
      return read(r.getDescribeJob());
    case Which::JOB_DESCRIBED:
      return read(r.getJobDescribed());
    case Which::CREATE_SHARDS:
      return read(r.getCreateShards());
    case Which::SHARDS_CREATED:
      return read(r.getShardsCreated());
    case Which::OPEN_JOB:
      return read(r.getOpenJob());
    case Which::JOB_OPENED:
      return read(r.getJobOpened());
    case Which::START_JOB:
      return read(r.getStartJob());
    case Which::SET_ROSTER:
      return read(r.getSetRoster());
    case Which::ROSTER_APPLIED:
      return read(r.getRosterApplied());
    case Which::FENCE_WORKER:
      return read(r.getFenceWorker());
    case Which::WORKER_FENCED:
      return read(r.getWorkerFenced());
    case Which::LEASE_REQUEST:
      return read(r.getLeaseRequest());
    case Which::LEASE_GRANT:
      return read(r.getLeaseGrant());
    case Which::WORKER_FINISHED:
      return read(r.getWorkerFinished());
    case Which::STOP_JOB:
      return read(r.getStopJob());
    case Which::SET_EVALUATOR:
      return read(r.getSetEvaluator());
    case Which::EVALUATE:
      return read(r.getEvaluate());
    case Which::EVALUATED:
      return read(r.getEvaluated());
    case Which::CLOSE_JOB:
      return read(r.getCloseJob());
    case Which::JOB_CLOSED:
      return read(r.getJobClosed());
    case Which::TASK_FAILED:
      return read(r.getTaskFailed());
    case Which::ACCUSATION:
      return read(r.getAccusation());
    case Which::HEARTBEAT:
      return read(r.getHeartbeat());
    case Which::HEARTBEAT_ANSWER:
      return read(r.getHeartbeatAnswer());
    case Which::LOG_LINES:
      return read(r.getLogLines());
    case Which::SUBMIT_JOB:
      return read(r.getSubmitJob());
    case Which::JOB_SUBMITTED:
      return read(r.getJobSubmitted());
    case Which::STATUS_REQUEST:
      return read(r.getStatusRequest());
    case Which::STATUS_ANSWER:
      return read(r.getStatusAnswer());
    case Which::STOP_REQUEST:
      return read(r.getStopRequest());
    case Which::REQUEST_DONE:
      return RequestDone{};
    case Which::LOGS_REQUEST:
      return read(r.getLogsRequest());
    case Which::REFUSED:
      return read(r.getRefused());
    case Which::PAUSE_JOB:
      return read(r.getPauseJob());
    case Which::PREPARE_CHECKPOINT:
      return read(r.getPrepareCheckpoint());
    case Which::CHECKPOINT_PREPARED:
      return read(r.getCheckpointPrepared());
    case Which::TAKE_CUT:
      return read(r.getTakeCut());
    case Which::MARK_CHANNELS:
      return read(r.getMarkChannels());
    case Which::ABANDON_CHECKPOINT:
      return read(r.getAbandonCheckpoint());
    case Which::SHARD_WRITTEN:
      return read(r.getShardWritten());
    case Which::CHECKPOINT_FAILED:
      return read(r.getCheckpointFailed());
    case Which::SAVE_REQUEST:
      return read(r.getSaveRequest());
    case Which::CHECKPOINT_SAVED:
      return read(r.getCheckpointSaved());
    case Which::EVENTS_REQUEST:
      return read(r.getEventsRequest());
    case Which::EVENTS_ANSWER:
      return read(r.getEventsAnswer());
    case Which::LEAVE_REQUEST:
      return LeaveRequest{};
    case Which::CHECKPOINT_REQUEST:
      return read(r.getCheckpointRequest());
    case Which::TRACE_EVENTS:
      return read(r.getTraceEvents());
    case Which::EVALUATE_CHECKPOINT:
      return read(r.getEvaluateCheckpoint());
    case Which::EVALUATION_FAILED:
      return read(r.getEvaluationFailed());
    case Which::RESUBMIT_REQUEST:
      return read(r.getResubmitRequest());
    case Which::LEAVE_GRANTED:
      return LeaveGranted{};
  }
  throw Malformed{
      "it is of kind " + std::to_string(static_cast<unsigned>(r.which())) + ", which this version doesn't know",
      ErrorCode::kConfig};
}

struct NameOf {
  const char* operator()(const DescribeJob&) const { return "DescribeJob"; }
  const char* operator()(const JobDescribed&) const { return "JobDescribed"; }
  const char* operator()(const CreateShards&) const { return "CreateShards"; }
  const char* operator()(const ShardsCreated&) const { return "ShardsCreated"; }
  const char* operator()(const OpenJob&) const { return "OpenJob"; }
  const char* operator()(const JobOpened&) const { return "JobOpened"; }
  const char* operator()(const StartJob&) const { return "StartJob"; }
  const char* operator()(const SetRoster&) const { return "SetRoster"; }
  const char* operator()(const RosterApplied&) const { return "RosterApplied"; }
  const char* operator()(const FenceWorker&) const { return "FenceWorker"; }
  const char* operator()(const WorkerFenced&) const { return "WorkerFenced"; }
  const char* operator()(const LeaseRequest&) const { return "LeaseRequest"; }
  const char* operator()(const LeaseGrant&) const { return "LeaseGrant"; }
  const char* operator()(const WorkerFinished&) const { return "WorkerFinished"; }
  const char* operator()(const StopJob&) const { return "StopJob"; }
  const char* operator()(const SetEvaluator&) const { return "SetEvaluator"; }
  const char* operator()(const Evaluate&) const { return "Evaluate"; }
  const char* operator()(const Evaluated&) const { return "Evaluated"; }
  const char* operator()(const CloseJob&) const { return "CloseJob"; }
  const char* operator()(const JobClosed&) const { return "JobClosed"; }
  const char* operator()(const TaskFailed&) const { return "TaskFailed"; }
  const char* operator()(const Accusation&) const { return "Accusation"; }
  const char* operator()(const Heartbeat&) const { return "Heartbeat"; }
  const char* operator()(const HeartbeatAnswer&) const { return "HeartbeatAnswer"; }
  const char* operator()(const LogLines&) const { return "LogLines"; }
  const char* operator()(const SubmitJob&) const { return "SubmitJob"; }
  const char* operator()(const JobSubmitted&) const { return "JobSubmitted"; }
  const char* operator()(const StatusRequest&) const { return "StatusRequest"; }
  const char* operator()(const StatusAnswer&) const { return "StatusAnswer"; }
  const char* operator()(const StopRequest&) const { return "StopRequest"; }
  const char* operator()(const RequestDone&) const { return "RequestDone"; }
  const char* operator()(const LogsRequest&) const { return "LogsRequest"; }
  const char* operator()(const Refused&) const { return "Refused"; }
  const char* operator()(const PauseJob&) const { return "PauseJob"; }
  const char* operator()(const PrepareCheckpoint&) const { return "PrepareCheckpoint"; }
  const char* operator()(const CheckpointPrepared&) const { return "CheckpointPrepared"; }
  const char* operator()(const TakeCut&) const { return "TakeCut"; }
  const char* operator()(const MarkChannels&) const { return "MarkChannels"; }
  const char* operator()(const AbandonCheckpoint&) const { return "AbandonCheckpoint"; }
  const char* operator()(const ShardWritten&) const { return "ShardWritten"; }
  const char* operator()(const CheckpointFailed&) const { return "CheckpointFailed"; }
  const char* operator()(const SaveRequest&) const { return "SaveRequest"; }
  const char* operator()(const ResubmitRequest&) const { return "ResubmitRequest"; }
  const char* operator()(const CheckpointSaved&) const { return "CheckpointSaved"; }
  const char* operator()(const EventsRequest&) const { return "EventsRequest"; }
  const char* operator()(const EventsAnswer&) const { return "EventsAnswer"; }
  const char* operator()(const LeaveRequest&) const { return "LeaveRequest"; }
  const char* operator()(const CheckpointRequest&) const { return "CheckpointRequest"; }
  const char* operator()(const LeaveGranted&) const { return "LeaveGranted"; }
  const char* operator()(const TraceEvents&) const { return "TraceEvents"; }
  const char* operator()(const EvaluateCheckpoint&) const { return "EvaluateCheckpoint"; }
  const char* operator()(const EvaluationFailed&) const { return "EvaluationFailed"; }
};

}  // namespace

const char* name_of(const ControlMessage& message) {
  return std::visit(NameOf{}, message);
}

Result<EncodedControl> encode(const ControlMessage& message) {
  auto bytes = build<schema::ControlMessage>(
      name_of(message), [&message](schema::ControlMessage::Builder b) { std::visit(WriteBody{b}, message); });
  if (!bytes) return tl::unexpected(bytes.error());
  if (bytes->size() > kMaxBlobBytes)
    return fail(ErrorCode::kData, std::string("message ") + name_of(message) + " has " + std::to_string(bytes->size()) +
                                      " bytes; a message may have at most 64 MiB");
  const FrameType type = bytes->size() > kMaxControlBytes ? FrameType::kBlob : FrameType::kControl;
  return EncodedControl{type, std::move(*bytes)};
}

Result<ControlMessage> decode_control(FrameType type, Bytes control, Bytes payload) {
  if (type != FrameType::kControl && type != FrameType::kBlob)
    return fail(ErrorCode::kData, "a frame of type " + std::to_string(static_cast<unsigned>(type)) +
                                      " on a control connection; expected control (16) or blob (17)");
  return parse<schema::ControlMessage>("ControlMessage", type == FrameType::kBlob ? payload : control, read_body);
}

}  // namespace disttrain::wire
