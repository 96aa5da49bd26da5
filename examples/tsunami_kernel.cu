// SPDX-License-Identifier: Apache-2.0
// All time steps of tsunami.py in one kernel: its blocks advance the cells, put their borders into the neighbours'
// memory, raise the neighbours' signals, and wait for their own. The host takes no part in a step.
//
// The arithmetic is that of tsunami_scheme.py, operation by operation, so that the result is the same to the last bit.
#include <cooperative_groups.h>
#include <pypgas.cuh>

constexpr int ghost = 2;
constexpr double gravity = 9.81, friction = 0.0025, thin = 0.01;

struct Plan {
  const double *bed, *still;
  double *peak;
  pgas::u64 *signals;             // one for each neighbour: its last step
  long plane, row, rows, columns; // elements of depth, u or v; of a row; cells of this PE
  double dt, per_dx, per_dy, top_speed;
};

// What a neighbour gets: `height` x `width` cells, from my (y, x) to its (their_y, their_x), for its signal `signal`;
// `mine` is my signal that this neighbour raises.
struct Side { long pe, signal, mine, y, x, their_y, their_x, height, width; };

__device__ inline double largest(double a, double b) { return a > b ? a : b; }
__device__ inline double least(double a, double b) { return a < b ? a : b; }
__device__ inline double upwind(double speed, double behind, double ahead) {
  return behind * largest(speed, 0.0) + ahead * least(speed, 0.0);
}

struct Flow { double speed, flow; };

// New speed through the near face of cell i, and what it carries; `along` and `across` are distances in memory.
__device__ inline Flow face(const double *depth, const double *speed, const double *side, const double *bed, long i,
                            long along, long across, double per_along, double per_across, const Plan &p) {
  const double surface_behind = bed[i - along] + depth[i - along], surface_here = bed[i] + depth[i];
  const double sill = largest(bed[i - along], bed[i]);
  const double behind = largest(surface_behind - sill, 0.0), here = largest(surface_here - sill, 0.0);
  const double water = largest(behind, here);
  double drift = side[i - along] + side[i];
  drift += side[i + across - along];
  drift += side[i + across];
  drift *= 0.25;
  double next = surface_behind - surface_here;
  next *= gravity * per_along;
  const double now = speed[i];
  next -= upwind(now, now - speed[i - along], speed[i + along] - now) * per_along;
  next -= upwind(drift, now - speed[i - across], speed[i + across] - now) * per_across;
  next += now;
  double drag = now * now;
  drag += drift * drift;
  drag = sqrt(drag);
  drag *= friction * p.dt;
  drag /= largest(water, thin);
  drag += 1.0;
  next /= drag;
  if (water <= thin) next = 0.0;
  next = least(next, p.top_speed);
  next = largest(next, -p.top_speed);
  return {next, upwind(next, behind, here)};
}

__device__ void advance(const Plan &p, const double *old, double *fresh) {
  const double *depth = old, *u = old + p.plane, *v = old + 2 * p.plane;
  for (long y = blockIdx.x; y < p.rows; y += gridDim.x)
    for (long x = threadIdx.x; x < p.columns; x += blockDim.x) {
      const long i = (y + ghost) * p.row + x + ghost;
      const Flow west = face(depth, u, v, p.bed, i, 1, p.row, p.per_dx, p.per_dy, p);
      const Flow east = face(depth, u, v, p.bed, i + 1, 1, p.row, p.per_dx, p.per_dy, p);
      const Flow south = face(depth, v, u, p.bed, i, p.row, 1, p.per_dy, p.per_dx, p);
      const Flow north = face(depth, v, u, p.bed, i + p.row, p.row, 1, p.per_dy, p.per_dx, p);
      double gain = west.flow - east.flow;
      gain *= p.per_dx;
      double gain_y = south.flow - north.flow;
      gain_y *= p.per_dy;
      gain += gain_y;
      gain += depth[i];
      fresh[i] = gain;
      fresh[i + p.plane] = west.speed;
      fresh[i + 2 * p.plane] = south.speed;
      const long inner = y * p.columns + x;
      p.peak[inner] = largest(p.peak[inner], gain - p.still[inner]);
    }
}

__device__ void send_border(const Plan &p, double *state, const Side &side, long step) {
  for (int plane = 0; plane < 3; plane++)
    for (long y = 0; y < side.height; y++) {
      double *mine = state + plane * p.plane + (side.y + y) * p.row + side.x;
      double *theirs = state + plane * p.plane + (side.their_y + y) * p.row + side.their_x;
      pgas::put_nbi<pgas::block>(theirs, mine, size_t(side.width), int(side.pe));
    }
  if (threadIdx.x == 0) {
    pgas::fence();
    pgas::signal_set(p.signals + side.signal, pgas::u64(step), int(side.pe));
  }
}

__global__ void simulate(long first, long last, double *states, const double *bed, const double *still, double *peak,
                         pgas::u64 *signals, const long *sides, long plane, long row, long rows, long columns,
                         long n_sides, double dt, double per_dx, double per_dy, double top_speed) {
  const Plan p = {bed, still, peak, signals, plane, row, rows, columns, dt, per_dx, per_dy, top_speed};
  const Side *neighbours = reinterpret_cast<const Side *>(sides);
  const auto grid = cooperative_groups::this_grid();
  for (long step = first; step <= last; step++) {
    double *old = states + (step - 1) % 2 * 3 * plane, *fresh = states + step % 2 * 3 * plane;
    advance(p, old, fresh);
    grid.sync();
    for (long k = blockIdx.x; k < n_sides; k += gridDim.x) {
      send_border(p, fresh, neighbours[k], step);
      if (threadIdx.x == 0) pgas::signal_wait_until(signals + neighbours[k].mine, pgas::Compare::ge, pgas::u64(step));
    }
    grid.sync();
  }
}
