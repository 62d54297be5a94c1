// Messages to bytes and back. Encoding fails only for size. Decoding trusts nothing: for any bytes the result is a
// whole, checked message (enums in range, texts and lists within common/bounds.h, texts printable, intervals and
// layouts valid) or a kData error that says what was wrong. No I/O, no state, any thread. protocol.capnp is the book of
// all messages.
//
// How a shell sends and receives (transport/control_link.h does this for control connections):
//
//   OutgoingFrame frame;                                     // a hello
//   const std::vector<std::byte> bytes = wire::encode(Hello{...});
//   frame.header.type = FrameType::kHello;
//   frame.control = bytes;
//   transport.dial(loop, address, frame, deadline, done);    // first frame back: decode_hello_answer
//
//   wire::ScratchBuffer scratch;                             // a push: one per thread, no allocation per frame
//   frame.header.type = FrameType::kPush;
//   frame.header.job = job;                                  // and generation, and sequence = next
//   frame.control = wire::encode(push, scratch);             // valid until scratch is used again; send() copies it
//   frame.payload = std::as_bytes(std::span(gradients).subspan(begin, elements));
//                                                            // gradients change again once it is acknowledged
//   connection.send(frame);
//
//   void on_frame(const FrameHeader& header, Bytes control, Bytes payload) {
//     switch (header.type) {
//       case FrameType::kPush: { Result<Push> push = wire::decode_push(control); ... }
//       default: ++unknown_frames_;                          // a type of a later version: count, drop
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "common/bounds.h"
#include "common/messages/checkpoint.h"
#include "common/messages/client.h"
#include "common/messages/control.h"
#include "common/messages/data.h"
#include "common/messages/session.h"
#include "common/result.h"
#include "transport/wire/frame.h"

namespace disttrain::wire {

using Bytes = std::span<const std::byte>;

// --- Session: kHello, kWelcome, kRefused; in the control part.

// The answer to a hello.
using HelloAnswer = std::variant<Welcome, Refused>;

std::vector<std::byte> encode(const Hello& hello);
std::vector<std::byte> encode(const Welcome& welcome);
std::vector<std::byte> encode(const Refused& refused);

Result<Hello> decode_hello(Bytes control);
// Any type but kWelcome and kRefused is an error.
Result<HelloAnswer> decode_hello_answer(FrameType type, Bytes control);

// --- Control connections: kControl, kBlob.

using ControlMessage =
    std::variant<DescribeJob, JobDescribed, CreateShards, ShardsCreated, OpenJob, JobOpened, StartJob, SetRoster,
                 RosterApplied, FenceWorker, WorkerFenced, LeaseRequest, LeaseGrant, WorkerFinished, StopJob,
                 SetEvaluator, Evaluate, Evaluated, CloseJob, JobClosed, TaskFailed, Accusation, Heartbeat,
                 HeartbeatAnswer, LogLines, SubmitJob, JobSubmitted, StatusRequest, StatusAnswer, StopRequest,
                 RequestDone, LogsRequest, Refused, PauseJob, PrepareCheckpoint, CheckpointPrepared, TakeCut,
                 MarkChannels, AbandonCheckpoint, ShardWritten, CheckpointFailed, SaveRequest, CheckpointSaved,
                 EventsRequest, EventsAnswer, LeaveRequest, LeaveGranted>;

// A message of at most 64 KiB is the control part of a kControl frame, a larger one the payload of a kBlob frame.
struct EncodedControl {
  FrameType type = FrameType::kControl;
  std::vector<std::byte> bytes;

  Bytes control() const { return type == FrameType::kControl ? Bytes(bytes) : Bytes(); }
  Bytes payload() const { return type == FrameType::kBlob ? Bytes(bytes) : Bytes(); }
};

// kData if the message doesn't fit into 64 MiB.
Result<EncodedControl> encode(const ControlMessage& message);
// kConfig: a message of a later version; count and drop it. kData: it is malformed.
Result<ControlMessage> decode_control(FrameType type, Bytes control, Bytes payload);
// "Heartbeat": for logs and counters.
const char* name_of(const ControlMessage& message);

// --- Data: channels and shard peers; in the control part. A fraction of a microsecond each; only the lists of a
// decoded message allocate.

// Memory for one encoded data message. The result of encode() lies in it until the next encode().
class ScratchBuffer {
 public:
  std::span<std::uint64_t> words() { return words_; }
  // Words that the last message used; only these are cleared for the next one.
  std::size_t used_words = 0;

 private:
  std::array<std::uint64_t, kMaxControlBytes / sizeof(std::uint64_t)> words_{};
};

Bytes encode(const Push& push, ScratchBuffer& scratch);
Bytes encode(const Pull& pull, ScratchBuffer& scratch);
Bytes encode(const Parameters& parameters, ScratchBuffer& scratch);
Bytes encode(const Acknowledge& acknowledge, ScratchBuffer& scratch);
Bytes encode(const Staged& staged, ScratchBuffer& scratch);
Bytes encode(const Commit& commit, ScratchBuffer& scratch);
Bytes encode(const PacerNews& news, ScratchBuffer& scratch);
Bytes encode(const Mark& mark, ScratchBuffer& scratch);
Bytes encode(const MarkTaken& taken, ScratchBuffer& scratch);
Bytes encode(const Cut& cut, ScratchBuffer& scratch);

Result<Push> decode_push(Bytes control);
// The same into a message whose memory is reused. After an error its content is unspecified.
Status decode_push(Bytes control, Push& into);
Result<Pull> decode_pull(Bytes control);
Result<Parameters> decode_parameters(Bytes control);
Result<Acknowledge> decode_acknowledge(Bytes control);
Result<Staged> decode_staged(Bytes control);
Result<Commit> decode_commit(Bytes control);
Result<PacerNews> decode_pacer_news(Bytes control);
Result<Mark> decode_mark(Bytes control);
Result<MarkTaken> decode_mark_taken(Bytes control);
Result<Cut> decode_cut(Bytes control);

}  // namespace disttrain::wire
