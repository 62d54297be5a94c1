// Unsigned integers in little-endian order, as all headers on the wire have them.
#pragma once

#include <cstddef>

namespace disttrain::wire {

// Writes an integer in little-endian order, on every host. Compilers turn the loop into one instruction.
template <typename Integer>
void put(std::byte* to, Integer value) {
  for (std::size_t i = 0; i < sizeof(Integer); ++i) to[i] = static_cast<std::byte>((value >> (8 * i)) & 0xff);
}

// Reads what put() has written.
template <typename Integer>
Integer get(const std::byte* from) {
  Integer value = 0;
  for (std::size_t i = 0; i < sizeof(Integer); ++i)
    value = static_cast<Integer>(value | static_cast<Integer>(static_cast<Integer>(from[i]) << (8 * i)));
  return value;
}

}  // namespace disttrain::wire
