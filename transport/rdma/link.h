// The two ends of an RDMA connection are joined by a queue pair. An RdmaLink owns one end: the queue pair with its
// completion queue, the slots for messages, and what both ends have agreed on. It belongs to one loop at a time.
//
// This class posts work and reports completions. The channel decides what to do.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "transport/rdma/blocks.h"
#include "transport/rdma/credits.h"
#include "transport/rdma/device.h"
#include "transport/rdma/message.h"

namespace disttrain::transport {

inline constexpr std::uint32_t kRdmaSlots = 32;      // for messages with bytes and blocks, in each direction
inline constexpr std::uint32_t kRdmaSpareSlots = 4;  // for messages that return credits; see credits.h
inline constexpr std::uint32_t kRdmaSlotBytes = 8192;
inline constexpr std::uint32_t kRdmaMaxWrites = 16;  // answers that are being written
inline constexpr std::uint32_t kRdmaMaxReads = 1;    // payloads that are being read

class RdmaLink {
 public:
  // The kind of a work request, and for a message the number of its slot.
  enum class Work : std::uint32_t { kReceive, kSend, kWrite, kRead };
  struct Completion {
    Work work = Work::kReceive;
    std::uint32_t slot = 0;
    std::uint32_t bytes = 0;  // of a received message
    ibv_wc_status status = IBV_WC_SUCCESS;
  };

  // `id` is bound to a device, and reports its events on `events`. Posts all receive slots. If this fails, and the peer
  // has asked for the connection, it is refused with the error.
  static Result<std::unique_ptr<RdmaLink>> make(std::shared_ptr<RdmaDevices> devices, EventChannel events, CmId id);
  ~RdmaLink();
  RdmaLink(const RdmaLink&) = delete;

  // Registers with the device the memory that each link needs, and frees it again. kConfig: the process may lock less.
  static Status try_memory(RdmaDevices& devices, ibv_context* device);

  // Call them once, after make(): ask for a connection, or accept one. `peer` comes from the other end's request.
  Status connect();
  Status accept(const rdma_conn_param& asked, const RdmaGreeting& peer);
  // The end that has asked learns here what the other end has said.
  void greeted(const RdmaGreeting& peer);

  // The numeric address of the other end's host, without a port.
  std::string peer_host() const;

  int event_descriptor() const { return events_->fd; }
  int completion_descriptor() const { return completions_->fd; }
  rdma_event_channel* events() const { return events_.get(); }

  // Asks the device to make completion_descriptor() readable when the next message comes, or with kEverything when
  // anything completes. kEverything stays in force until that happens. What has completed before the call doesn't
  // count.
  enum class WakeFor { kMessages, kEverything };
  Status arm(WakeFor what);
  // Takes the signals that have made completion_descriptor() readable.
  void take_signals();
  // Completions that have come, at most as many as fit. Empty: there are none.
  Result<std::span<const Completion>> poll();

  // ---- Messages.
  RdmaCredits& credits() { return *credits_; }
  // True if a message with bytes or a block may be sent now.
  bool may_send() const { return credits_ && credits_->may_send() && !free_sends_.empty(); }
  // The longest body of such a message.
  std::size_t max_body() const { return max_body_; }
  // Sends a message that is gathered from these parts. Only if may_send().
  Status send(RdmaMessage::Kind kind, std::span<const Bytes> parts);
  // Sends a message that only returns credits, if credits must be returned and a slot for it is free.
  Status return_credits();
  std::uint32_t sends_under_way() const { return sends_; }
  void send_completed(std::uint32_t slot);

  Bytes received(const Completion& completion) const;
  // The slot may receive again.
  Status post_receive(std::uint32_t slot);

  // ---- Memory. `local` is in a region with the key `local_key`.
  Status write(Bytes local, std::uint32_t local_key, const RemoteBytes& to);
  Status read(MutableBytes local, std::uint32_t local_key, const RemoteBytes& from);

  RemoteBlocks& peer_blocks() { return peer_blocks_; }
  const std::shared_ptr<RdmaDevices>& devices() const { return devices_; }
  const std::shared_ptr<const RdmaDomain>& domain() const { return domain_; }

  // The fence: tells the peer that the connection ends, and destroys the queue pair. From then on neither end accesses
  // memory of the other one. Also frees the slots, because a peer may need long to answer, and until then each link
  // would keep memory locked. Only events() may be used afterwards; completion_descriptor() is closed.
  void end();

 private:
  RdmaLink(std::shared_ptr<RdmaDevices> devices, EventChannel events, CmId id)
      : devices_(std::move(devices)), events_(std::move(events)), id_(std::move(id)) {}
  Status set_up();
  Status post(ibv_send_wr& request, const char* what);
  Status post_send(std::uint32_t slot, const RdmaMessage& message);
  MutableBytes receive_slot(std::uint32_t slot) const;
  MutableBytes send_slot(std::uint32_t slot) const;

  const std::shared_ptr<RdmaDevices> devices_;
  const EventChannel events_;
  const CmId id_;
  std::shared_ptr<const RdmaDomain> domain_;
  CompletionChannel completions_;
  CompletionQueue queue_;
  std::unique_ptr<RdmaBuffer> slots_;  // the receive slots, then the send slots

  std::optional<RdmaCredits> credits_;  // empty until the greeting of the peer has come
  std::size_t max_body_ = 0;
  std::vector<std::uint32_t> free_sends_;   // slots for messages with bytes and blocks
  std::vector<std::uint32_t> free_spares_;  // slots for messages that return credits
  std::uint32_t sends_ = 0;
  RemoteBlocks peer_blocks_;
  std::array<ibv_wc, 32> polled_;
  std::array<Completion, 32> completed_;
};

}  // namespace disttrain::transport
