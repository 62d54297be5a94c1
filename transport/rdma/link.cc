#include "transport/rdma/link.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/check.h"

namespace disttrain::transport {
namespace {

constexpr std::uint32_t kAllSlots = kRdmaSlots + kRdmaSpareSlots;  // of each direction
constexpr std::size_t kBytesOfSlots = std::size_t{2} * kAllSlots * kRdmaSlotBytes;
constexpr std::uint32_t kMaxSendWork = kAllSlots + kRdmaMaxWrites + kRdmaMaxReads;
constexpr std::uint8_t kMaxReadsAtOnce = 16;  // of a queue pair, in each direction, if the devices can
// 4.096 us * 2^16 = 0.27 s: then a device sends again what wasn't acknowledged. By itself rdma_cm takes 2 s, so the
// loss of one packet could cost the time that a hello has.
constexpr std::uint8_t kAckTimeout = 16;
// How often, before the connection fails. 7 is the most, but soft-RoCE then never gives up.
constexpr std::uint8_t kRetries = 6;
constexpr std::uint8_t kWaitForSlot = 7;  // for ever; credits keep the peer's slots from running out

std::uint64_t name_of(RdmaLink::Work work, std::uint32_t slot = 0) {
  return static_cast<std::uint64_t>(work) << 32 | slot;
}

ibv_sge entry(Bytes bytes, std::uint32_t key) {
  ibv_sge entry{};
  entry.addr = reinterpret_cast<std::uintptr_t>(bytes.data());
  entry.length = static_cast<std::uint32_t>(bytes.size());
  entry.lkey = key;
  return entry;
}

GreetingBytes own_greeting() {
  return encode(RdmaGreeting{.slots = kRdmaSlots, .slot_bytes = kRdmaSlotBytes});
}

}  // namespace

Result<std::unique_ptr<RdmaLink>> RdmaLink::make(std::shared_ptr<RdmaDevices> devices, EventChannel events, CmId id) {
  std::unique_ptr<RdmaLink> link(new RdmaLink(std::move(devices), std::move(events), std::move(id)));
  if (Status made = link->set_up(); !made) {
    refuse(link->id_.get(), made.error().message);
    return tl::unexpected(made.error());
  }
  return link;
}

RdmaLink::~RdmaLink() {
  end();
}

Status RdmaLink::try_memory(RdmaDevices& devices, ibv_context* device) {
  auto domain = devices.domain(device);
  if (!domain) return tl::unexpected(domain.error());
  const auto slots = RdmaBuffer::make(std::move(*domain), kBytesOfSlots);
  if (slots) return {};
  const Error& error = slots.error();
  return fail(error.code == ErrorCode::kUnavailable ? ErrorCode::kConfig : error.code, error.message);
}

Status RdmaLink::set_up() {
  std::uint8_t ack_timeout = kAckTimeout;  // an old kernel that doesn't know the option keeps its longer time
  ::rdma_set_option(id_.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &ack_timeout, sizeof ack_timeout);
  auto domain = devices_->domain(id_->verbs);
  if (!domain) return tl::unexpected(domain.error());
  domain_ = std::move(*domain);
  completions_.reset(::ibv_create_comp_channel(id_->verbs));
  if (!completions_) return rdma_error("make a completion channel", errno);
  ::fcntl(completions_->fd, F_SETFL, ::fcntl(completions_->fd, F_GETFL) | O_NONBLOCK);
  queue_.reset(::ibv_create_cq(id_->verbs, static_cast<int>(kAllSlots + kMaxSendWork), nullptr, completions_.get(), 0));
  if (!queue_) return rdma_error("make a completion queue", errno);
  ibv_qp_init_attr wanted{};
  wanted.send_cq = queue_.get();
  wanted.recv_cq = queue_.get();
  wanted.qp_type = IBV_QPT_RC;
  wanted.sq_sig_all = 1;
  wanted.cap.max_send_wr = kMaxSendWork;
  wanted.cap.max_recv_wr = kAllSlots;
  wanted.cap.max_send_sge = 1;
  wanted.cap.max_recv_sge = 1;
  if (::rdma_create_qp(id_.get(), domain_->get(), &wanted) != 0) return rdma_error("make a queue pair", errno);
  auto slots = RdmaBuffer::make(domain_, kBytesOfSlots);
  // A stranger may cause this error, so other connections still try RDMA.
  if (!slots) return tl::unexpected(slots.error());
  slots_ = std::move(*slots);
  for (std::uint32_t slot = 0; slot < kAllSlots; ++slot) {
    if (Status posted = post_receive(slot); !posted) return posted;
    (slot < kRdmaSlots ? free_sends_ : free_spares_).push_back(slot);
  }
  return arm(WakeFor::kMessages);
}

Status RdmaLink::connect() {
  ibv_device_attr limits{};
  if (const int error = ::ibv_query_device(id_->verbs, &limits); error != 0)
    return rdma_error("ask the RDMA device for its limits", error);
  const GreetingBytes greeting = own_greeting();
  rdma_conn_param asked{};
  asked.private_data = greeting.data();
  asked.private_data_len = kGreetingBytes;
  asked.responder_resources = static_cast<std::uint8_t>(std::clamp<int>(limits.max_qp_rd_atom, 0, kMaxReadsAtOnce));
  asked.initiator_depth = static_cast<std::uint8_t>(std::clamp<int>(limits.max_qp_init_rd_atom, 0, kMaxReadsAtOnce));
  asked.retry_count = kRetries;
  asked.rnr_retry_count = kWaitForSlot;
  if (::rdma_connect(id_.get(), &asked) != 0) return rdma_error("connect", errno);
  return {};
}

Status RdmaLink::accept(const rdma_conn_param& asked, const RdmaGreeting& peer) {
  ibv_device_attr limits{};
  if (const int error = ::ibv_query_device(id_->verbs, &limits); error != 0)
    return rdma_error("ask the RDMA device for its limits", error);
  greeted(peer);
  const GreetingBytes greeting = own_greeting();
  rdma_conn_param answer{};
  answer.private_data = greeting.data();
  answer.private_data_len = kGreetingBytes;
  // rdma_cm gives the values of the request from this end's view.
  answer.responder_resources =
      static_cast<std::uint8_t>(std::clamp<int>(limits.max_qp_rd_atom, 0, asked.responder_resources));
  answer.initiator_depth =
      static_cast<std::uint8_t>(std::clamp<int>(limits.max_qp_init_rd_atom, 0, asked.initiator_depth));
  answer.rnr_retry_count = kWaitForSlot;
  if (::rdma_accept(id_.get(), &answer) != 0) return rdma_error("accept a connection", errno);
  return {};
}

void RdmaLink::greeted(const RdmaGreeting& peer) {
  credits_.emplace(kRdmaSlots, peer.slots);
  max_body_ = std::min(kRdmaSlotBytes, peer.slot_bytes) - kMessageBytes;
}

std::string RdmaLink::peer_host() const {
  return host_of(peer_of(id_.get()));
}

Status RdmaLink::arm(WakeFor what) {
  if (const int error = ::ibv_req_notify_cq(queue_.get(), what == WakeFor::kMessages ? 1 : 0); error != 0)
    return rdma_error("wait for completions", error);
  return {};
}

void RdmaLink::take_signals() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (::ibv_get_cq_event(completions_.get(), &queue, &context) == 0) ::ibv_ack_cq_events(queue, 1);
}

Result<std::span<const RdmaLink::Completion>> RdmaLink::poll() {
  const int count = ::ibv_poll_cq(queue_.get(), static_cast<int>(polled_.size()), polled_.data());
  if (count < 0) return rdma_error("take completions", -count);
  for (int i = 0; i < count; ++i) {
    const ibv_wc& wc = polled_[static_cast<std::size_t>(i)];
    const bool is_message = wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV;
    completed_[static_cast<std::size_t>(i)] = {static_cast<Work>(wc.wr_id >> 32), static_cast<std::uint32_t>(wc.wr_id),
                                               is_message ? wc.byte_len : 0, wc.status};
  }
  return std::span<const Completion>(completed_).first(static_cast<std::size_t>(count));
}

MutableBytes RdmaLink::receive_slot(std::uint32_t slot) const {
  return slots_->bytes().subspan(std::size_t{slot} * kRdmaSlotBytes, kRdmaSlotBytes);
}

MutableBytes RdmaLink::send_slot(std::uint32_t slot) const {
  return receive_slot(kAllSlots + slot);
}

Bytes RdmaLink::received(const Completion& completion) const {
  return Bytes(receive_slot(completion.slot)).first(completion.bytes);
}

Status RdmaLink::post_receive(std::uint32_t slot) {
  ibv_sge where = entry(receive_slot(slot), slots_->key());
  ibv_recv_wr request{};
  request.wr_id = name_of(Work::kReceive, slot);
  request.sg_list = &where;
  request.num_sge = 1;
  ibv_recv_wr* failed = nullptr;
  if (const int error = ::ibv_post_recv(id_->qp, &request, &failed); error != 0)
    return rdma_error("post a receive slot", error);
  return {};
}

Status RdmaLink::post(ibv_send_wr& request, const char* what) {
  ibv_send_wr* failed = nullptr;
  if (const int error = ::ibv_post_send(id_->qp, &request, &failed); error != 0) return rdma_error(what, error);
  return {};
}

Status RdmaLink::post_send(std::uint32_t slot, const RdmaMessage& message) {
  const MutableBytes memory = send_slot(slot);
  encode(message, memory.first<kMessageBytes>());
  ibv_sge what = entry(memory.first(kMessageBytes + message.bytes), slots_->key());
  ibv_send_wr request{};
  request.wr_id = name_of(Work::kSend, slot);
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SOLICITED;  // wakes a peer that waits for messages
  request.sg_list = &what;
  request.num_sge = 1;
  if (Status posted = post(request, "send"); !posted) return posted;
  ++sends_;
  return {};
}

Status RdmaLink::send(RdmaMessage::Kind kind, std::span<const Bytes> parts) {
  DISTTRAIN_CHECK(may_send());
  const std::uint32_t slot = free_sends_.back();
  free_sends_.pop_back();
  credits_->sent();
  std::byte* to = send_slot(slot).data() + kMessageBytes;
  const std::byte* const begin = to;
  for (const Bytes part : parts) {
    std::memcpy(to, part.data(), part.size());
    to += part.size();
  }
  return post_send(slot, {kind, credits_->take_returned(), static_cast<std::uint32_t>(to - begin)});
}

Status RdmaLink::return_credits() {
  if (!credits_ || !credits_->must_return() || free_spares_.empty()) return {};
  const std::uint32_t slot = free_spares_.back();
  free_spares_.pop_back();
  return post_send(slot, {RdmaMessage::Kind::kCredits, credits_->take_returned(), 0});
}

void RdmaLink::send_completed(std::uint32_t slot) {
  --sends_;
  (slot < kRdmaSlots ? free_sends_ : free_spares_).push_back(slot);
}

Status RdmaLink::write(Bytes local, std::uint32_t local_key, const RemoteBytes& to) {
  ibv_sge what = entry(local, local_key);
  ibv_send_wr request{};
  request.wr_id = name_of(Work::kWrite);
  request.opcode = IBV_WR_RDMA_WRITE;
  request.sg_list = &what;
  request.num_sge = 1;
  request.wr.rdma.remote_addr = to.address;
  request.wr.rdma.rkey = to.key;
  return post(request, "write to memory of the peer");
}

Status RdmaLink::read(MutableBytes local, std::uint32_t local_key, const RemoteBytes& from) {
  ibv_sge where = entry(local, local_key);
  ibv_send_wr request{};
  request.wr_id = name_of(Work::kRead);
  request.opcode = IBV_WR_RDMA_READ;
  request.sg_list = &where;
  request.num_sge = 1;
  request.wr.rdma.remote_addr = from.address;
  request.wr.rdma.rkey = from.key;
  return post(request, "read from memory of the peer");
}

void RdmaLink::end() {
  if (id_->qp == nullptr) return;
  // Before the connection is made, or when the peer has ended it, there is nothing to tell the peer. Then this fails.
  ::rdma_disconnect(id_.get());
  ::rdma_destroy_qp(id_.get());
  queue_.reset();
  completions_.reset();
  slots_.reset();
}

}  // namespace disttrain::transport
