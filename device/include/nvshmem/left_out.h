// SPDX-License-Identifier: Apache-2.0
// What NVSHMEM has and pypgas has not: using a name of this list is a compile error that says so.
#pragma once

#include "types.h"

namespace nvshmem_detail {
template <class...> struct Never { static constexpr bool value = false; };
// Stands for the result, so that the only error is the one that is meant.
struct Nothing {
  template <class T> PGAS_FN operator T() const { return {}; }
};
} // namespace nvshmem_detail

#define NVSHMEM_PGAS_LEFT_OUT(name, why)                                                                              \
  template <class... A> PGAS_FN nvshmem_detail::Nothing name(A &&...) {                                               \
    static_assert(nvshmem_detail::Never<A...>::value, "pypgas has no " #name ": " why);                               \
    return {};                                                                                                        \
  }

// Multicast (NVLink SHARP), shared memory for bulk copies (TMA), regions that batch operations, counted signals.
NVSHMEM_PGAS_LEFT_OUT(nvshmemx_mc_ptr, "there is no multicast memory; use nvshmem_ptr and a loop over the PEs")
NVSHMEM_PGAS_LEFT_OUT(nvshmemx_ask_smem, "copies take no shared memory; leave the call out")
NVSHMEM_PGAS_LEFT_OUT(nvshmemx_give_smem, "copies take no shared memory; leave the call out")
NVSHMEM_PGAS_LEFT_OUT(nvshmemx_release_smem, "copies take no shared memory; leave the call out")
NVSHMEM_PGAS_LEFT_OUT(nvshmemx_region_start_block, "operations are not batched by regions; leave the call out")
NVSHMEM_PGAS_LEFT_OUT(nvshmemx_region_stop_block, "operations are not batched by regions; leave the call out")
NVSHMEM_PGAS_LEFT_OUT(nvshmemx_region_is_active, "operations are not batched by regions; leave the call out")
NVSHMEM_PGAS_LEFT_OUT(nvshmemx_signal_counted_reset, "use nvshmem_putmem_signal with NVSHMEM_SIGNAL_ADD")
NVSHMEM_PGAS_LEFT_OUT(nvshmemx_signal_counted_load, "use nvshmem_signal_fetch")
NVSHMEM_PGAS_LEFT_OUT(nvshmemx_signal_counted_wait_until, "use nvshmem_signal_wait_until")
NVSHMEM_PGAS_LEFT_OUT(nvshmemx_putmem_signal_counted_nbi_block, "use nvshmemx_putmem_signal_nbi_block with NVSHMEM_SIGNAL_ADD")
NVSHMEM_PGAS_LEFT_OUT(nvshmemx_barrier_warpgroup, "a scope is a thread, a warp or a block; use nvshmemx_barrier_block")
NVSHMEM_PGAS_LEFT_OUT(nvshmemx_status_string, "errors are exceptions of the Python program")

// Queue pairs chosen by the caller. There are hundreds of these functions: a declaration each has to do.
namespace nvshmem_detail {
template <class... A> struct NoQueuePair {
  static_assert(Never<A...>::value, "pypgas has no nvshmemx_qp_ functions: it chooses the queue pair; use the name without qp");
  typedef Nothing type;
};
} // namespace nvshmem_detail
#define NVSHMEM_PGAS_NO_QUEUE(name)                                                                                   \
  template <class... A> PGAS_FN typename nvshmem_detail::NoQueuePair<A...>::type nvshmemx_qp_##name(A...);
#define NVSHMEM_PGAS_QUEUE(name, suffix)                                                                              \
  NVSHMEM_PGAS_NO_QUEUE(name##_put##suffix)                                                                           \
  NVSHMEM_PGAS_NO_QUEUE(name##_get##suffix)                                                                           \
  NVSHMEM_PGAS_NO_QUEUE(name##_put_nbi##suffix)                                                                       \
  NVSHMEM_PGAS_NO_QUEUE(name##_get_nbi##suffix)                                                                       \
  NVSHMEM_PGAS_NO_QUEUE(name##_put_signal##suffix)                                                                    \
  NVSHMEM_PGAS_NO_QUEUE(name##_put_signal_nbi##suffix)
#define NVSHMEM_PGAS_TYPED_QUEUE(name, type, ...)                                                                     \
  NVSHMEM_PGAS_NO_QUEUE(name##_p)                                                                                     \
  NVSHMEM_PGAS_NO_QUEUE(name##_g)                                                                                     \
  NVSHMEM_PGAS_QUEUE(name, )                                                                                          \
  NVSHMEM_PGAS_QUEUE(name, _warp)                                                                                     \
  NVSHMEM_PGAS_QUEUE(name, _block)
NVSHMEM_PGAS_RMA_TYPES(NVSHMEM_PGAS_TYPED_QUEUE, )
#define NVSHMEM_PGAS_QUEUES(prefix, suffix, scope, ...)                                                               \
  NVSHMEM_PGAS_NO_QUEUE(fence##suffix)                                                                                \
  NVSHMEM_PGAS_NO_QUEUE(quiet##suffix)
NVSHMEM_PGAS_SCOPES(NVSHMEM_PGAS_QUEUES, )
NVSHMEM_PGAS_NO_QUEUE(signal_op)
#undef NVSHMEM_PGAS_QUEUES
#undef NVSHMEM_PGAS_TYPED_QUEUE
#undef NVSHMEM_PGAS_QUEUE
#undef NVSHMEM_PGAS_NO_QUEUE

// Tiles. Their functions take template arguments of all kinds, so it is the types that are refused.
namespace nvshmemx {
#define NVSHMEM_PGAS_NO_TILES(name)                                                                                   \
  template <class... A> struct name {                                                                                 \
    static_assert(nvshmem_detail::Never<A...>::value, "pypgas has no tiles: copy row by row, or with iput and iget"); \
  };
NVSHMEM_PGAS_NO_TILES(Tensor)
NVSHMEM_PGAS_NO_TILES(Layout)
NVSHMEM_PGAS_NO_TILES(shape)
NVSHMEM_PGAS_NO_TILES(stride)
#undef NVSHMEM_PGAS_NO_TILES
#define NVSHMEM_PGAS_NO_TILE "copy row by row, or with iput and iget"
NVSHMEM_PGAS_LEFT_OUT(make_shape, NVSHMEM_PGAS_NO_TILE)
NVSHMEM_PGAS_LEFT_OUT(make_stride, NVSHMEM_PGAS_NO_TILE)
NVSHMEM_PGAS_LEFT_OUT(make_layout, NVSHMEM_PGAS_NO_TILE)
} // namespace nvshmemx

// What belongs into the Python program.
#define NVSHMEM_PGAS_ON_HOST "it is a host function; do it in the Python program"
NVSHMEM_PGAS_LEFT_OUT(nvshmem_init, "the Python program calls pypgas.init()")
NVSHMEM_PGAS_LEFT_OUT(nvshmem_init_thread, "the Python program calls pypgas.init()")
NVSHMEM_PGAS_LEFT_OUT(nvshmemx_init_attr, "the Python program calls pypgas.init()")
NVSHMEM_PGAS_LEFT_OUT(nvshmem_finalize, "the Python program calls pypgas.finalize()")
NVSHMEM_PGAS_LEFT_OUT(nvshmem_global_exit, "the Python program calls pypgas.abort()")
NVSHMEM_PGAS_LEFT_OUT(nvshmem_malloc, "the Python program allocates with pypgas.zeros() and passes the array")
NVSHMEM_PGAS_LEFT_OUT(nvshmem_calloc, "the Python program allocates with pypgas.zeros() and passes the array")
NVSHMEM_PGAS_LEFT_OUT(nvshmem_align, "the Python program allocates with pypgas.alloc() and passes the array")
NVSHMEM_PGAS_LEFT_OUT(nvshmem_free, "the Python program frees arrays with pypgas.free()")
NVSHMEM_PGAS_LEFT_OUT(nvshmem_team_split_strided, "the Python program makes teams, and passes them")
NVSHMEM_PGAS_LEFT_OUT(nvshmem_team_split_2d, "the Python program makes teams, and passes them")
NVSHMEM_PGAS_LEFT_OUT(nvshmem_team_destroy, "the Python program destroys its teams")
NVSHMEM_PGAS_LEFT_OUT(nvshmem_team_get_config, NVSHMEM_PGAS_ON_HOST)
NVSHMEM_PGAS_LEFT_OUT(nvshmemx_collective_launch, "the Python program launches kernels, with cooperative=True")
NVSHMEM_PGAS_LEFT_OUT(nvshmemx_cumodule_init, "modules are ready when they are loaded; leave the call out")
NVSHMEM_PGAS_LEFT_OUT(nvshmemx_cumodule_finalize, "modules are ready when they are loaded; leave the call out")
NVSHMEM_PGAS_LEFT_OUT(nvshmemx_buffer_register, NVSHMEM_PGAS_ON_HOST)
NVSHMEM_PGAS_LEFT_OUT(nvshmemx_buffer_unregister, NVSHMEM_PGAS_ON_HOST)
NVSHMEM_PGAS_LEFT_OUT(nvshmemx_barrier_all_on_stream, "the Python program calls pypgas.barrier_all(stream=...)")
NVSHMEM_PGAS_LEFT_OUT(nvshmemx_sync_all_on_stream, "the Python program calls pypgas.sync_all(stream=...)")
NVSHMEM_PGAS_LEFT_OUT(nvshmemx_quiet_on_stream, "the Python program calls pypgas.quiet()")
NVSHMEM_PGAS_LEFT_OUT(nvshmemx_putmem_on_stream, "the Python program calls pypgas.put(..., stream=...)")
NVSHMEM_PGAS_LEFT_OUT(nvshmemx_getmem_on_stream, "the Python program calls pypgas.get(..., stream=...)")
#undef NVSHMEM_PGAS_LEFT_OUT

// Predefined teams that pypgas does not make; their numbers belong to teams of the program here.
#define NVSHMEM_PGAS_NO_TEAM(name)                                                                                    \
  template <class... A> PGAS_FN constexpr nvshmem_team_t no_##name() {                                                \
    static_assert(nvshmem_detail::Never<A...>::value, "pypgas makes no " #name                                        \
                                                      ": the Python program splits a team and passes it");            \
    return NVSHMEM_TEAM_INVALID;                                                                                      \
  }
namespace nvshmem_detail {
NVSHMEM_PGAS_NO_TEAM(NVSHMEMX_TEAM_SAME_MYPE_NODE)
NVSHMEM_PGAS_NO_TEAM(NVSHMEM_TEAM_MC_SHARED)
} // namespace nvshmem_detail
#undef NVSHMEM_PGAS_NO_TEAM
#define NVSHMEMX_TEAM_SAME_MYPE_NODE (::nvshmem_detail::no_NVSHMEMX_TEAM_SAME_MYPE_NODE())
#define NVSHMEM_TEAM_MC_SHARED (::nvshmem_detail::no_NVSHMEM_TEAM_MC_SHARED())
