#include "transport/tcp/connection.h"

#include "transport/tcp/stream.h"

namespace disttrain::transport {

TcpConnection::TcpConnection(asio::io_context& loop, TcpSocket socket, const TcpOptions& options)
    : stream_(std::make_shared<TcpStream>(loop, std::move(socket), options)) {}

TcpConnection::~TcpConnection() {
  stream_->close();
}

void TcpConnection::start(ConnectionHandler& handler) {
  stream_->start(handler);
}

void TcpConnection::send(const OutgoingFrame& frame) {
  stream_->send(frame);
}

std::size_t TcpConnection::queued_bytes() const {
  return stream_->queued_bytes();
}

void TcpConnection::pause_receiving() {
  stream_->pause();
}

void TcpConnection::resume_receiving() {
  stream_->resume();
}

void TcpConnection::close() {
  stream_->close();
}

const std::string& TcpConnection::peer() const {
  return stream_->peer();
}

std::uint64_t TcpConnection::bytes_received() const {
  return stream_->bytes_received();
}

std::uint64_t TcpConnection::bytes_sent() const {
  return stream_->bytes_sent();
}

}  // namespace disttrain::transport
