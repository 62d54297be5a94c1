// Turns messages into bytes and back. protocol.capnp lists all messages. The functions use no I/O and no state, and any
// thread may call them.
//
// Encoding fails only if the message is too big. Decoding trusts nothing: for any bytes the result is either a checked
// message or a kData error that says what was wrong. In a checked message, enums are in range, texts and lists are
// within the limits of common/bounds.h, texts are printable, and intervals and layouts are valid.
//
// Examples of sending and receiving (transport/control_link.h does this for control connections):
//
//   OutgoingFrame frame;                                     // a hello
//   const std::vector<std::byte> bytes = wire::encode(Hello{...});
//   frame.header.type = FrameType::kHello;
//   frame.control = bytes;
//   transport.dial(loop, address, frame, deadline, done);    // decode_hello_answer() reads the first frame of the peer
//
//   wire::ScratchBuffer scratch;                             // a push; one buffer per thread saves allocations
//   frame.header.type = FrameType::kPush;
//   frame.header.job = job;                                  // set the generation and the next sequence, too
//   frame.control = wire::encode(push, scratch);             // valid until scratch is used again; send() copies it
//   frame.payload = std::as_bytes(std::span(gradients).subspan(begin, elements));
//                                                            // keep gradients unchanged until they are acknowledged
//   connection.send(frame);
//
//   void on_frame(const FrameHeader& header, Bytes control, Bytes payload) {
//     switch (header.type) {
//       case FrameType::kPush: { Result<Push> push = wire::decode_push(control); ... }
//       default: ++unknown_frames_;                          // count and drop a type of a later version
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
#include "common/messages/trace.h"
#include "common/result.h"
#include "transport/wire/frame.h"

namespace disttrain::wire {

using Bytes = std::span<const std::byte>;

// --- Session: the messages of kHello, kWelcome and kRefused frames. They are in the control part.

// The answer to a hello.
using HelloAnswer = std::variant<Welcome, Refused>;

std::vector<std::byte> encode(const Hello& hello);
std::vector<std::byte> encode(const Welcome& welcome);
std::vector<std::byte> encode(const Refused& refused);

Result<Hello> decode_hello(Bytes control);
// Reads the answer to a hello. Any type other than kWelcome and kRefused is an error.
Result<HelloAnswer> decode_hello_answer(FrameType type, Bytes control);

// --- Control connections: kControl, kBlob.

using ControlMessage =
    std::variant<DescribeJob, JobDescribed, CreateShards, ShardsCreated, OpenJob, JobOpened, StartJob, SetRoster,
                 RosterApplied, FenceWorker, WorkerFenced, LeaseRequest, LeaseGrant, WorkerFinished, StopJob,
                 SetEvaluator, Evaluate, Evaluated, CloseJob, JobClosed, TaskFailed, Accusation, Heartbeat,
                 HeartbeatAnswer, LogLines, SubmitJob, JobSubmitted, StatusRequest, StatusAnswer, StopRequest,
                 RequestDone, LogsRequest, Refused, PauseJob, PrepareCheckpoint, CheckpointPrepared, TakeCut,
                 MarkChannels, AbandonCheckpoint, ShardWritten, CheckpointFailed, SaveRequest, CheckpointSaved,
                 EventsRequest, EventsAnswer, LeaveRequest, LeaveGranted, CheckpointRequest, EvaluateCheckpoint,
                 EvaluationFailed, TraceEvents, ResubmitRequest>;

// An encoded message. If it has at most 64 KiB, it is the control part of a kControl frame; otherwise it is the payload
// of a kBlob frame.
struct EncodedControl {
  FrameType type = FrameType::kControl;
  std::vector<std::byte> bytes;

  Bytes control() const { return type == FrameType::kControl ? Bytes(bytes) : Bytes(); }
  Bytes payload() const { return type == FrameType::kBlob ? Bytes(bytes) : Bytes(); }
};

// kData: the message doesn't fit into 64 MiB.
Result<EncodedControl> encode(const ControlMessage& message);
// kConfig: the message is of a later version; count and drop it. kData: the message is malformed.
Result<ControlMessage> decode_control(FrameType type, Bytes control, Bytes payload);
// The message's name for logs and counters, such as "Heartbeat".
const char* name_of(const ControlMessage& message);

// --- Data: the messages of channels and shard peers. They are in the control part. Each call takes a fraction of a
// microsecond. Only the lists of a decoded message allocate memory.

// Memory for one encoded data message. The result of encode() is in this memory until the next encode().
class ScratchBuffer {
 public:
  std::span<std::uint64_t> words() { return words_; }
  // Number of words that the last message used. Only these must be cleared for the next message.
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
// The same, but decodes into `into` and reuses its memory. After an error the content of `into` is unspecified.
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
