// SPDX-License-Identifier: Apache-2.0
// What the library knows at run time, and the memory PEs share besides the heap. Only C++ fills these structures.
#pragma once

#include "report.cuh"
#include "types.cuh"

namespace pgas {

constexpr u32 state_version = 1;
constexpr u64 line = 64; // what two processors should not share
constexpr u64 inline_bytes = 256; // collective payloads up to this size travel in the slot itself
constexpr u64 garbage_capacity = 1024;

// What one PE brings to one collective call: who calls what, and (small payloads, or where the payload is).
struct alignas(64) Slot {
  u64 epoch;     // the call's ordinal in this team
  u32 operation; // a code of the host API
  u32 dtype;
  u64 nbytes;
  i64 detail;    // root, reduction, alignment: what else must agree
  u64 source;    // heap offset of the payload, or staged / inlined (below)
  u64 extra;     // what need not agree: lengths, the number of entries in the garbage list
  u64 reserved[2];
  unsigned char payload[inline_bytes];
};
constexpr u64 source_staged = ~u64(0);

// One PE's part of one team's synchronisation. `arrive` is used in the team's PE 0 only.
struct alignas(64) TeamSync {
  alignas(64) u64 arrive;  // count:16 | PEs with garbage:16 | epoch:4 | sum of signatures:28, low to high
  alignas(64) u64 release; // epoch << 2 | everybody has garbage << 1 | mismatch
  alignas(64) u64 epoch;   // the last completed call, advanced by the owner alone
  u64 outcome;             // of that call, from the thread that made it to the others of its warp or block
  Slot slots[2];           // by the parity of the epoch: a PE is at most one call ahead of another
};

enum class Phase : u32 { absent, running, finalized, failed };

// What a PE is doing, readable by every PE of its node.
struct alignas(64) Status {
  u32 phase;
  u32 pid;
  u32 operation;    // 0 while not in a long wait
  u32 team;
  u64 since;        // CLOCK_MONOTONIC nanoseconds
  u64 address;      // heap offset waited on
  u64 seen, expected;
  u32 compare, reserved;
  u64 mismatch;     // team << 48 | epoch (48 bits) for which `site` was last published
  char site[232];   // file:line of the caller
  char reason[256]; // why the PE failed
};

// The start of a PE's runtime area. TeamSync[max_teams], the garbage lists and the staging buffer follow.
struct AreaHeader {
  u32 version, max_teams;
  u64 staging_bytes;
  Status status;
};

struct AreaLayout {
  u64 teams, garbage, staging, bytes;
  AreaLayout() = default;
  PGAS_FN AreaLayout(u64 max_teams, u64 staging_bytes) {
    teams = (sizeof(AreaHeader) + 255) / 256 * 256;
    garbage = teams + max_teams * sizeof(TeamSync);
    staging = (garbage + 2 * garbage_capacity * sizeof(u64) + 4095) / 4096 * 4096;
    bytes = staging + (2 * staging_bytes + 4095) / 4096 * 4096;
  }
};

struct Team {
  u32 id;
  i64 size, me;       // me: this PE's number in the team
  const i64 *members; // world numbers, in team order
};

struct State {
  u32 version, bytes;
  i64 pe, n_pes;
  u64 heap_bytes;
  char *const *heaps; // by world PE: where its heap is mapped here, or null
  char *const *areas; // by world PE: where its runtime area is mapped here, or null
  u64 max_teams, staging_bytes;
  AreaLayout layout;
  const Team *world;
  WaitLimits limits; // of waits in GPU kernels; the CPU device has its own
  const Team *const *teams; // by id, max_teams of them: the live teams this PE is in; null where there is none

  PGAS_FN char *heap() const { return heaps[pe]; }
  PGAS_FN TeamSync *sync(i64 world_pe, u32 team) const {
    return reinterpret_cast<TeamSync *>(areas[world_pe] + layout.teams) + team;
  }
  PGAS_FN Status *status(i64 world_pe) const {
    return &reinterpret_cast<AreaHeader *>(areas[world_pe])->status;
  }
  PGAS_FN u64 *garbage(i64 world_pe, u64 epoch) const {
    return reinterpret_cast<u64 *>(areas[world_pe] + layout.garbage) + (epoch & 1) * garbage_capacity;
  }
  PGAS_FN char *staging(i64 world_pe, u64 chunk) const {
    return areas[world_pe] + layout.staging + (chunk & 1) * staging_bytes;
  }
};

// Kernel arguments that name a team or a context. A context's PE numbers count in its team; null means the world.
struct team {
  const Team *handle;
  PGAS_FN int my_pe() const { return int(handle->me); }
  PGAS_FN int n_pes() const { return int(handle->size); }
  // This team's PE `pe` as a number of `other`, or -1 if it is not a member there.
  PGAS_FN int translate(int pe, team other) const {
    for (i64 i = 0; i < other.handle->size; i++)
      if (other.handle->members[i] == handle->members[pe]) return int(i);
    return -1;
  }
};
struct context {
  const Team *team = nullptr;
};

// The address, in this PE, of what `local` (an address in this PE's heap) is in `world_pe`'s heap.
template <class T> PGAS_FN T *peer(const State &s, T *local, i64 world_pe) {
  typedef typename conditional<is_const<T>::value, const char, char>::type byte;
  return reinterpret_cast<T *>(s.heaps[world_pe] + (reinterpret_cast<byte *>(local) - s.heap()));
}

} // namespace pgas
