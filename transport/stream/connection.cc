#include "transport/stream/connection.h"

#include "transport/stream/stream.h"

namespace disttrain::transport {

StreamConnection::StreamConnection(asio::io_context& loop, std::unique_ptr<ByteChannel> channel, StreamStart start)
    : stream_(std::make_shared<Stream>(loop, std::move(channel), std::move(start))) {}

StreamConnection::~StreamConnection() {
  stream_->close();
}

void StreamConnection::start(ConnectionHandler& handler) {
  stream_->start(handler);
}

void StreamConnection::send(const OutgoingFrame& frame) {
  stream_->send(frame);
}

std::size_t StreamConnection::queued_bytes() const {
  return stream_->queued_bytes();
}

void StreamConnection::share(const Arena& arena) {
  stream_->share(arena);
}

void StreamConnection::pause_receiving() {
  stream_->pause();
}

void StreamConnection::resume_receiving() {
  stream_->resume();
}

void StreamConnection::close() {
  stream_->close();
}

const char* StreamConnection::wire() const {
  return stream_->wire();
}

const std::string& StreamConnection::peer() const {
  return stream_->peer();
}

std::uint64_t StreamConnection::bytes_received() const {
  return stream_->bytes_received();
}

std::uint64_t StreamConnection::bytes_sent() const {
  return stream_->bytes_sent();
}

}  // namespace disttrain::transport
