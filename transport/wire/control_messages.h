// One write() and one read() for each message of the control connections. Only codecs may include this. The messages
// between chief and tasks are in job_codec.cc, report_codec.cc and checkpoint_codec.cc, the messages of the command
// line in client_codec.cc. The codec of the chief's journal (chiefd/journal/codec.cc) includes this too, because the
// journal contains JobDescribed and Lease.
#pragma once

#include "transport/wire/pieces.h"

namespace disttrain::wire {

void write(const DescribeJob& m, schema::DescribeJob::Builder b);
DescribeJob read(schema::DescribeJob::Reader r);
void write(const JobDescribed& m, schema::JobDescribed::Builder b);
JobDescribed read(schema::JobDescribed::Reader r);
void write(const CreateShards& m, schema::CreateShards::Builder b);
CreateShards read(schema::CreateShards::Reader r);
void write(const ShardsCreated& m, schema::ShardsCreated::Builder b);
ShardsCreated read(schema::ShardsCreated::Reader r);
void write(const OpenJob& m, schema::OpenJob::Builder b);
OpenJob read(schema::OpenJob::Reader r);
void write(const JobOpened& m, schema::JobOpened::Builder b);
JobOpened read(schema::JobOpened::Reader r);
void write(const StartJob& m, schema::StartJob::Builder b);
StartJob read(schema::StartJob::Reader r);
void write(const SetRoster& m, schema::SetRoster::Builder b);
SetRoster read(schema::SetRoster::Reader r);
void write(const RosterApplied& m, schema::RosterApplied::Builder b);
RosterApplied read(schema::RosterApplied::Reader r);
void write(const FenceWorker& m, schema::FenceWorker::Builder b);
FenceWorker read(schema::FenceWorker::Reader r);
void write(const WorkerFenced& m, schema::WorkerFenced::Builder b);
WorkerFenced read(schema::WorkerFenced::Reader r);
void write(const LeaseRequest& m, schema::LeaseRequest::Builder b);
LeaseRequest read(schema::LeaseRequest::Reader r);
void write(const Lease& lease, schema::Lease::Builder b);
Lease read(schema::Lease::Reader r);
void write(const LeaseGrant& m, schema::LeaseGrant::Builder b);
LeaseGrant read(schema::LeaseGrant::Reader r);
void write(const WorkerFinished& m, schema::WorkerFinished::Builder b);
WorkerFinished read(schema::WorkerFinished::Reader r);
void write(const CheckpointRequest& m, schema::CheckpointRequest::Builder b);
CheckpointRequest read(schema::CheckpointRequest::Reader r);
void write(const StopJob& m, schema::StopJob::Builder b);
StopJob read(schema::StopJob::Reader r);
void write(const SetEvaluator& m, schema::SetEvaluator::Builder b);
SetEvaluator read(schema::SetEvaluator::Reader r);
void write(const Evaluate& m, schema::Evaluate::Builder b);
Evaluate read(schema::Evaluate::Reader r);
void write(const Evaluated& m, schema::Evaluated::Builder b);
Evaluated read(schema::Evaluated::Reader r);
void write(const EvaluateCheckpoint& m, schema::EvaluateCheckpoint::Builder b);
EvaluateCheckpoint read(schema::EvaluateCheckpoint::Reader r);
void write(const EvaluationFailed& m, schema::EvaluationFailed::Builder b);
EvaluationFailed read(schema::EvaluationFailed::Reader r);
void write(const CloseJob& m, schema::CloseJob::Builder b);
CloseJob read(schema::CloseJob::Reader r);
void write(const JobClosed& m, schema::JobClosed::Builder b);
JobClosed read(schema::JobClosed::Reader r);
void write(const TaskFailed& m, schema::TaskFailed::Builder b);
TaskFailed read(schema::TaskFailed::Reader r);
void write(const Accusation& m, schema::Accusation::Builder b);
Accusation read(schema::Accusation::Reader r);
void write(const Heartbeat& m, schema::Heartbeat::Builder b);
Heartbeat read(schema::Heartbeat::Reader r);
void write(const HeartbeatAnswer& m, schema::HeartbeatAnswer::Builder b);
HeartbeatAnswer read(schema::HeartbeatAnswer::Reader r);
void write(const PacerReport& m, schema::PacerReport::Builder b);
PacerReport read(schema::PacerReport::Reader r);
void write(const LogLines& m, schema::LogLines::Builder b);
LogLines read(schema::LogLines::Reader r);
void write(const TraceEvents& m, schema::TraceEvents::Builder b);
TraceEvents read(schema::TraceEvents::Reader r);

void write(const SubmitJob& m, schema::SubmitJob::Builder b);
SubmitJob read(schema::SubmitJob::Reader r);
void write(const JobSubmitted& m, schema::JobSubmitted::Builder b);
JobSubmitted read(schema::JobSubmitted::Reader r);
void write(const StatusRequest& m, schema::StatusRequest::Builder b);
StatusRequest read(schema::StatusRequest::Reader r);
void write(const StatusAnswer& m, schema::StatusAnswer::Builder b);
StatusAnswer read(schema::StatusAnswer::Reader r);
void write(const StopRequest& m, schema::StopRequest::Builder b);
StopRequest read(schema::StopRequest::Reader r);
void write(const ResubmitRequest& m, schema::ResubmitRequest::Builder b);
ResubmitRequest read(schema::ResubmitRequest::Reader r);
void write(const LogsRequest& m, schema::LogsRequest::Builder b);
LogsRequest read(schema::LogsRequest::Reader r);

void write(const PauseJob& m, schema::PauseJob::Builder b);
PauseJob read(schema::PauseJob::Reader r);
void write(const PrepareCheckpoint& m, schema::PrepareCheckpoint::Builder b);
PrepareCheckpoint read(schema::PrepareCheckpoint::Reader r);
void write(const CheckpointPrepared& m, schema::CheckpointPrepared::Builder b);
CheckpointPrepared read(schema::CheckpointPrepared::Reader r);
void write(const TakeCut& m, schema::TakeCut::Builder b);
TakeCut read(schema::TakeCut::Reader r);
void write(const MarkChannels& m, schema::MarkChannels::Builder b);
MarkChannels read(schema::MarkChannels::Reader r);
void write(const AbandonCheckpoint& m, schema::AbandonCheckpoint::Builder b);
AbandonCheckpoint read(schema::AbandonCheckpoint::Reader r);
void write(const ShardWritten& m, schema::ShardWritten::Builder b);
ShardWritten read(schema::ShardWritten::Reader r);
void write(const CheckpointFailed& m, schema::CheckpointFailed::Builder b);
CheckpointFailed read(schema::CheckpointFailed::Reader r);
void write(const SaveRequest& m, schema::SaveRequest::Builder b);
SaveRequest read(schema::SaveRequest::Reader r);
void write(const CheckpointSaved& m, schema::CheckpointSaved::Builder b);
CheckpointSaved read(schema::CheckpointSaved::Reader r);
void write(const EventsRequest& m, schema::EventsRequest::Builder b);
EventsRequest read(schema::EventsRequest::Reader r);
void write(const EventsAnswer& m, schema::EventsAnswer::Builder b);
EventsAnswer read(schema::EventsAnswer::Reader r);

}  // namespace disttrain::wire
