// What only the transport shm does: payloads in shared memory, and peers that misuse what they share.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <sstream>

#include "tests/transport/two_ends.h"
#include "transport/shm/blocks.h"
#include "transport/shm/message.h"
#include "transport/shm/ring.h"
#include "transport/shm/transport.h"
#include "transport/wire/frame_header.h"

// How often this thread has asked the system's resolver for a host name.
static thread_local int asked_of_resolver = 0;

// Takes the place of libc's, for this program.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** found) {
  if (hints == nullptr || (hints->ai_flags & AI_NUMERICHOST) == 0) ++asked_of_resolver;
  const auto real = reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return real(node, service, hints, found);
}

namespace disttrain::transport {
namespace {

using wire::FrameType;

// A handler that reads lent payloads in place.
class Borrower final : public End {
 public:
  using End::End;
  Result<Bytes> payload_lent(const wire::FrameHeader&, Bytes, const LentPayload& lent) override {
    borrowed = lent;
    landing.clear();
    return lent.bytes;
  }
  void on_frame(const wire::FrameHeader& header, Bytes control, Bytes payload) override {
    frames.push_back({header, {control.begin(), control.end()}, {payload.begin(), payload.end()}});
    seen = payload.data();
    if (then) then();
  }
  LentPayload borrowed;
  const std::byte* seen = nullptr;
};

// A peer that speaks to the listener by itself, and so may do what it likes with the rings.
class RawPeer {
 public:
  explicit RawPeer(Descriptor connected) : socket_(std::move(connected)) { write_frame(FrameType::kHello); }

  // Sends the rings and the wake-ups to the listener.
  void open() {
    const std::array<int, 3> descriptors = {ring.fd(), own_wake_.get(), peer_wake_.get()};
    send(ShmMessage(), descriptors);
  }
  void send(const ShmMessage& message, std::span<const int> descriptors) {
    const auto sent = send_message(socket_.get(), message, descriptors);
    EXPECT_TRUE(sent.has_value() && *sent);
  }

  // Writes a frame without a control part. If it has a place, the payload isn't in the ring.
  void write_frame(FrameType type, Bytes payload = {}, const std::optional<wire::PayloadPlace>& at = std::nullopt) {
    wire::FrameHeader fields;
    fields.type = type;
    wire::PlaceBytes place{};
    if (at) place = wire::encode_place(*at);
    const Bytes place_bytes = at ? Bytes(place) : Bytes();
    auto header = wire::encode_header(fields, {}, payload, wire::ChecksumKind::kNone, place_bytes);
    const std::array<iovec, 2> buffers = {iovec{header.data(), header.size()}, iovec{place.data(), place_bytes.size()}};
    EXPECT_TRUE(writer.write(buffers));
  }
  void wake_listener() {
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(peer_wake_.get(), &one, sizeof one), 8);
  }

  RingFile ring = std::move(*RingFile::make());
  RingWriter writer{ring.state(0), ring.bytes(0)};

 private:
  const Descriptor socket_;
  const Descriptor own_wake_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  const Descriptor peer_wake_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
};

class Shm : public TwoEnds {
 protected:
  void SetUp() override { listen(transport, "127.0.0.1:0"); }

  // A connection to the listener's Unix socket.
  Descriptor connect_raw() const {
    Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const std::string name = "disttrain/test/" + listener->address();
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::ranges::copy(name, address.sun_path + 1);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address),
                        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())),
              0);
    return socket;
  }

  // The other end of the connection with a peer that has opened it.
  std::unique_ptr<End> start_server() {
    auto end = std::make_unique<End>(accepted());
    end->start();
    return end;
  }

  ShmTransport transport{ShmOptions{.cluster = "test", .is_required = true, .tcp = {}}};
};

TEST_F(Shm, ALentPayloadIsReadWhereItIs) {
  auto [dialled, accepted] = connect();
  dialled->share(arena);
  End client(std::move(dialled));
  Borrower server(std::move(accepted));
  client.start();
  server.start();
  std::ranges::copy(pattern(kBytes, 1), memory.bytes().begin());
  const Bytes payload = Bytes(memory.bytes()).subspan(64, 4096);
  client.send(push(payload));
  ASSERT_TRUE(run_until_true([&] { return server.frames.size() == 1; }));
  EXPECT_TRUE(std::ranges::equal(server.frames[0].payload, payload));
  EXPECT_EQ(server.seen, server.borrowed.bytes.data());
  // It is the same memory, so a change shows.
  memory.bytes()[64] = std::byte{0xee};
  EXPECT_EQ(server.borrowed.bytes[0], std::byte{0xee});
  EXPECT_EQ(client.connection->bytes_sent(), server.connection->bytes_received());
}

TEST_F(Shm, ALentPayloadOutlivesItsSender) {
  auto own = std::make_unique<Memory>(arena, kBytes, Paging::kTouched);
  std::ranges::fill(own->bytes(), std::byte{7});
  auto [dialled, accepted] = connect();
  dialled->share(arena);
  End client(std::move(dialled));
  Borrower server(std::move(accepted));
  client.start();
  server.start();
  client.send(push(Bytes(own->bytes())));
  ASSERT_TRUE(run_until_true([&] { return server.frames.size() == 1; }));
  client.close();
  own.reset();
  ASSERT_TRUE(run_until_true([&] { return server.closed == 1; }));
  server.connection.reset();
  EXPECT_TRUE(std::ranges::all_of(server.borrowed.bytes, [](std::byte b) { return b == std::byte{7}; }));
}

TEST_F(Shm, AnAnswerIsInTheOfferedMemoryWhenSendReturns) {
  constexpr std::size_t kAt = 4096;
  auto [dialled, accepted] = connect();
  dialled->share(arena);
  End client(std::move(dialled)), server(std::move(accepted));
  client.start();
  server.start();
  client.place = memory.bytes().subspan(kAt);
  client.send(push({}, memory.bytes()));
  ASSERT_TRUE(run_until_true([&] { return server.frames.size() == 1; }));
  const auto values = pattern(5000, 4);
  server.send(answer(values, kAt));
  EXPECT_TRUE(std::ranges::equal(memory.bytes().subspan(kAt, values.size()), values));
}

// Otherwise the peer would write its answers into the memory of the earlier offer.
TEST_F(Shm, AnOfferThatThePeerCannotTakeClosesTheConnection) {
  auto [dialled, accepted] = connect();
  dialled->share(arena);
  End client(std::move(dialled)), server(std::move(accepted));
  client.start();
  server.start();
  std::vector<std::unique_ptr<Memory>> blocks;
  for (std::size_t i = 0; i < kMaxPeerBlocks + 1; ++i) {
    blocks.push_back(std::make_unique<Memory>(arena, 4096, Paging::kTouched));
    client.send(push({}, blocks.back()->bytes()));
  }
  ASSERT_TRUE(run_until_true([&] { return client.closed == 1; }));
  EXPECT_NE(client.reason.message.find("can't offer other memory"), std::string::npos) << client.reason.message;
}

// The peer's wake-up may come late, when its bytes were read already. Then the end must ask for the next one.
TEST_F(Shm, AWakeUpWithoutBytesDoesNotHideTheNextOne) {
  RawPeer peer(connect_raw());
  peer.open();
  const auto end = start_server();
  run_ready(loop);
  ASSERT_TRUE(peer.writer.must_wake_reader());
  peer.wake_listener();
  run_ready(loop);
  peer.write_frame(FrameType::kControl);
  ASSERT_TRUE(peer.writer.must_wake_reader());
  peer.wake_listener();
  ASSERT_TRUE(run_until_true([&] { return end->frames.size() == 1; }));
}

TEST_F(Shm, APeerOnAnotherHostIsToldApart) {
  const auto dialled = dial("203.0.113.1:7000");
  ASSERT_FALSE(dialled);
  EXPECT_EQ(dialled.error().message,
            "can't connect to 203.0.113.1:7000 through shared memory (transport.kind = \"shm\"): the address isn't one "
            "of this host");
}

// The system's resolver may need seconds, so dial() doesn't wait for it.
TEST_F(Shm, HostNamesAreResolvedOnAnotherThread) {
  asked_of_resolver = 0;
  const std::string port = listener->address().substr(listener->address().rfind(':'));
  std::optional<Result<std::unique_ptr<Connection>>> named;
  std::optional<Result<std::unique_ptr<Connection>>> unknown;
  Transport& steps = transport.for_steps();
  steps.dial(loop, "localhost" + port, hello_frame(), std::chrono::seconds(30), [&](auto r) { named = std::move(r); });
  steps.dial(loop, "no-such-host.invalid" + port, hello_frame(), std::chrono::seconds(30),
             [&](auto r) { unknown = std::move(r); });
  ASSERT_TRUE(run_until_true([&] { return named.has_value() && unknown.has_value(); }));
  EXPECT_TRUE(*named) << named->error().message;
  ASSERT_FALSE(*unknown);
  EXPECT_EQ(unknown->error().code, ErrorCode::kUnavailable);
  EXPECT_NE(unknown->error().message.find("can't be resolved"), std::string::npos) << unknown->error().message;
  EXPECT_EQ(asked_of_resolver, 0) << "on this thread";
}

TEST_F(Shm, WithoutTheNeedForSharedMemoryTcpServes) {
  TcpTransport tcp;
  std::vector<std::unique_ptr<Arrival>> over_tcp;
  auto other =
      tcp.listen(loop, "127.0.0.1:0", {}, [&](std::unique_ptr<Arrival> a) { over_tcp.push_back(std::move(a)); });
  ASSERT_TRUE(other);
  ShmTransport any{ShmOptions{.cluster = "test", .is_required = false, .tcp = {}}};
  std::optional<Result<std::unique_ptr<Connection>>> result;
  any.for_steps().dial(loop, (*other)->address(), hello_frame(), std::chrono::seconds(30),
                       [&result](auto r) { result = std::move(r); });
  ASSERT_TRUE(run_until_true([&] { return result.has_value() && !over_tcp.empty(); }));
  EXPECT_TRUE(*result);
}

TEST_F(Shm, BothSocketsOfAListenerShareTheLimit) {
  ListenerLimits limits;
  limits.max_connections = 1;
  auto narrow = transport.listen(loop, "127.0.0.1:0", limits,
                                 [this](std::unique_ptr<Arrival> arrival) { arrivals.push_back(std::move(arrival)); });
  ASSERT_TRUE(narrow);
  auto first = dial((*narrow)->address());
  ASSERT_TRUE(first);
  ASSERT_TRUE(run_until_true([this] { return arrivals.size() == 1; }));
  std::optional<Result<std::unique_ptr<Connection>>> second;
  transport.dial(loop, (*narrow)->address(), hello_frame(), std::chrono::seconds(30),
                 [&](auto r) { second = std::move(r); });
  ASSERT_TRUE(run_until_true([&] { return second.has_value() && (*narrow)->refused() == 1; }));
  EXPECT_EQ(arrivals.size(), 1u);
}

TEST_F(Shm, AListenerThatIsGoneLeavesNoName) {
  const std::string address = listener->address();
  const auto names = [] {
    std::ifstream file("/proc/net/unix");
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  };
  EXPECT_NE(names().find("@disttrain/test/" + address), std::string::npos);
  listener.reset();
  run_ready(loop);
  EXPECT_EQ(names().find("@disttrain/test/" + address), std::string::npos);
}

// ---- Peers that misuse what they share. The listener closes them, and goes on.

Descriptor memory_file(std::size_t bytes, bool sealed) {
  Descriptor file(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
  if (sealed) {
    EXPECT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  }
  return file;
}

TEST_F(Shm, APeerWithDescriptorsOfAnotherKindIsRefused) {
  const Descriptor wake(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Result<RingFile> ring = RingFile::make();
  ASSERT_TRUE(ring);
  const Descriptor small = memory_file(100, true), unsealed = memory_file(4096 + 2 * kRingBytes, false);
  std::uint64_t refused = 0;
  ShmMessage wrong_magic;
  wrong_magic.magic = 1;
  ShmMessage block_first;
  block_first.kind = ShmMessage::Kind::kBlock;
  const struct {
    ShmMessage message;
    std::vector<int> descriptors;
  } kPeers[] = {{{}, {small.get(), wake.get(), wake.get()}},
                {{}, {unsealed.get(), wake.get(), wake.get()}},
                {{}, {ring->fd()}},
                {{}, {ring->fd(), socket.get(), wake.get()}},
                {{}, {ring->fd(), wake.get(), socket.get()}},
                {wrong_magic, {ring->fd(), wake.get(), wake.get()}},
                {block_first, {ring->fd()}}};
  for (const auto& peer : kPeers) {
    const Descriptor stranger = connect_raw();
    const auto sent = send_message(stranger.get(), peer.message, peer.descriptors);
    ASSERT_TRUE(sent.has_value() && *sent);
    ++refused;
    ASSERT_TRUE(run_until_true([&] { return listener->refused() == refused; })) << refused;
  }
  { const Descriptor silent = connect_raw(); }  // closes at once
  ASSERT_TRUE(run_until_true([&] { return listener->refused() == refused + 1; }));
  auto [dialled, accepted] = connect();  // others still get through
}

TEST_F(Shm, APeerThatScribblesOverTheRingsIsClosed) {
  for (const int direction : {0, 1}) {
    RawPeer peer(connect_raw());
    peer.open();
    const auto end = start_server();
    run_ready(loop);
    if (direction == 0) {
      peer.ring.state(0).written = ~std::uint64_t{0} / 2;
      peer.wake_listener();
    } else {
      peer.ring.state(1).read = ~std::uint64_t{0} / 2;
      end->send(FrameType::kControl, 1, {});
    }
    ASSERT_TRUE(run_until_true([&] { return end->closed == 1; }));
    EXPECT_EQ(end->reason.code, ErrorCode::kData);
    EXPECT_NE(end->reason.message.find("damaged the memory that it shares"), std::string::npos) << end->reason.message;
  }
}

TEST_F(Shm, APayloadInABlockThatIsNotSharedClosesTheConnection) {
  using Kind = wire::PayloadPlace::Kind;
  // Of the peer's blocks, number 1 is shared with 8192 bytes; number 2 isn't a sealed file.
  const wire::PayloadPlace kPlaces[] = {
      {.kind = Kind::kLent, .block = 9},
      {.kind = Kind::kLent, .block = 1, .offset = 8192 - 4},
      {.kind = Kind::kLent, .block = 1, .offset = ~std::uint64_t{0} - 3},
      {.kind = Kind::kLent, .block = 1, .offset = 2},
      {.kind = Kind::kLent, .block = 2},
      {.kind = Kind::kLent, .block = 1, .offset = 4},  // 0 bytes
      {.kind = Kind::kPlaced, .offset = 0},
      {.kind = Kind::kInFrame, .offered_block = 1, .offered_offset = 4096, .offered_bytes = 8192},
  };
  const Descriptor good = memory_file(8192, true), unsealed = memory_file(8192, false);
  std::uint64_t refused = 0;
  for (const wire::PayloadPlace& place : kPlaces) {
    RawPeer peer(connect_raw());
    const bool is_empty = place.kind == Kind::kInFrame || place.offset == 4;
    const std::vector<std::byte> payload(is_empty ? 0 : 64);
    peer.write_frame(FrameType::kPush, payload, place);
    peer.open();
    ShmMessage block;
    block.kind = ShmMessage::Kind::kBlock;
    block.block = place.block == 2 ? 2 : 1;
    const int file = place.block == 2 ? unsealed.get() : good.get();
    peer.send(block, {&file, 1});
    // The file of block 2 may arrive together with the rings. Then the listener refuses the peer.
    ASSERT_TRUE(run_until_true([&] { return !arrivals.empty() || listener->refused() == refused + 1; }));
    refused = listener->refused();
    if (arrivals.empty()) {
      EXPECT_EQ(place.block, 2u);
      continue;
    }
    const auto end = start_server();
    ASSERT_TRUE(run_until_true([&] { return end->closed == 1; }));
    EXPECT_EQ(end->reason.code, ErrorCode::kData) << end->reason.message;
    EXPECT_TRUE(end->frames.empty());
  }
}

TEST_F(Shm, ALargeBlockOfAPeerGetsNoMemoryByBeingRead) {
  const Descriptor large = memory_file(std::uint64_t{1} << 31, true);
  RawPeer peer(connect_raw());
  peer.write_frame(FrameType::kPush, std::vector<std::byte>(64),
                   wire::PayloadPlace{.kind = wire::PayloadPlace::Kind::kLent, .block = 1});
  peer.open();
  ShmMessage block;
  block.kind = ShmMessage::Kind::kBlock;
  block.block = 1;
  const int file = large.get();
  peer.send(block, {&file, 1});
  ASSERT_TRUE(run_until_true([&] { return !arrivals.empty(); }));
  const auto end = start_server();
  ASSERT_TRUE(run_until_true([&] { return end->frames.size() == 1; }));
  struct stat status {};
  ASSERT_EQ(::fstat(large.get(), &status), 0);
  EXPECT_LT(status.st_blocks, 8192) << "a huge page has 4096 blocks";
}

TEST_F(Shm, AProcessOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(3);
    asio::io_context own;
    ShmTransport stranger{ShmOptions{.cluster = "test", .is_required = true, .tcp = {}}};
    int code = 4;
    stranger.for_steps().dial(own, listener->address(), hello_frame(), std::chrono::seconds(30), [&code](auto dialled) {
      const bool told = !dialled && dialled.error().code == ErrorCode::kNoPermission &&
                        dialled.error().message.find("belongs to user 0, this one to user 65534") != std::string::npos;
      code = told ? 0 : 5;
    });
    own.run();
    ::_exit(code);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  ASSERT_TRUE(run_until_true([&] { return listener->refused() == 1; })) << "the listener asks for the user too";
  EXPECT_TRUE(arrivals.empty());
}

// A socket of this process, which has the abstract name that a listener at `address` wants.
Descriptor squat(const std::string& address) {
  const std::string name = "disttrain/test/" + address;
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  std::memcpy(where.sun_path + 1, name.data(), name.size());
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&where), length) != 0 || ::listen(socket.get(), 8) != 0)
    return {};
  return socket;
}

TEST_F(Shm, SocketThatAnotherProcessHasTakenIsNamed) {
  // The port is this test's before anybody may squat its name.
  const Descriptor port(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof where;
  ASSERT_EQ(::bind(port.get(), reinterpret_cast<sockaddr*>(&where), length), 0);
  ASSERT_EQ(::listen(port.get(), 8), 0);
  ASSERT_EQ(::getsockname(port.get(), reinterpret_cast<sockaddr*>(&where), &length), 0);
  const std::string address = "127.0.0.1:" + std::to_string(ntohs(where.sin_port));
  const Descriptor squatter = squat(address);
  ASSERT_TRUE(squatter);
  std::vector<std::string> warnings;
  ShmTransport any{ShmOptions{.cluster = "test", .is_required = false, .tcp = {}, .warn = [&](const std::string& text) {
                                warnings.push_back(text);
                              }}};
  const auto listens = [&](ShmTransport& on) {
    return on.listen(loop, "fd:" + std::to_string(::fcntl(port.get(), F_DUPFD_CLOEXEC, 0)), {},
                     [](std::unique_ptr<Arrival>) {});
  };
  EXPECT_TRUE(listens(any)) << "over TCP";
  EXPECT_TRUE(listens(any));
  ASSERT_EQ(warnings.size(), 1u) << "once";
  EXPECT_NE(warnings[0].find("the socket @disttrain/test/" + address + " is taken by process " +
                             std::to_string(::getpid()) + " of user " + std::to_string(::geteuid())),
            std::string::npos)
      << warnings[0];
  const auto required = listens(transport);
  ASSERT_FALSE(required);
  EXPECT_NE(required.error().message.find("@disttrain/test/" + address + " is taken by process"), std::string::npos)
      << required.error().message;
}

TEST_F(Shm, SocketOfAnotherUserIsNamedWhenItIsDialled) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  TcpTransport tcp;
  auto other =
      tcp.listen(loop, "127.0.0.1:0", {}, [this](std::unique_ptr<Arrival> a) { arrivals.push_back(std::move(a)); });
  ASSERT_TRUE(other);
  int ready[2];
  int done[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(done, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(done[1]);
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(3);
    const Descriptor squatter = squat((*other)->address());
    char byte = squatter ? '1' : '0';
    if (::write(ready[1], &byte, 1) != 1) ::_exit(4);
    ::_exit(::read(done[0], &byte, 1) == 0 ? 0 : 5);
  }
  char byte = '0';
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, '1');
  std::vector<std::string> warnings;
  ShmTransport any{ShmOptions{.cluster = "test", .is_required = false, .tcp = {}, .warn = [&](const std::string& text) {
                                warnings.push_back(text);
                              }}};
  for (std::size_t times = 1; times <= 2; ++times) {
    any.for_steps().dial(loop, (*other)->address(), hello_frame(), std::chrono::seconds(30), [](auto) {});
    ASSERT_TRUE(run_until_true([&] { return arrivals.size() == times; })) << "over TCP";
  }
  for (const int fd : {ready[0], ready[1], done[0], done[1]}) ::close(fd);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  ASSERT_EQ(warnings.size(), 1u) << "once";
  EXPECT_NE(warnings[0].find("the socket @disttrain/test/" + (*other)->address() + " belongs to process " +
                             std::to_string(child) + " of user 65534, and this process to user 0"),
            std::string::npos)
      << warnings[0];
}

}  // namespace
}  // namespace disttrain::transport
