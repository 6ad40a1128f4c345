/* What the cores of this machine can do with the cheap half of a reflected step: per path-step one normal and one exponential from
   xoshiro128+, the minimum of a Brownian bridge, and a trapezoidal drift, in single precision, over lanes that the compiler
   vectorises. One process a core, forked here; each keeps its lanes in its cache.

   usage: ceiling CORES STEPS   prints: path-steps per second of all cores, average of Y2 (about 0.814 at beta = 1, h = 0.1)

   Build: cc -O3 -march=native -ffast-math ceiling.c -lm */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LANES 512

static uint32_t rng[4][LANES];
static float idle[LANES], busy[LANES], total[LANES];

static uint64_t splitmix(uint64_t *state) {
  uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static inline uint32_t word(int i) {
  uint32_t out = rng[0][i] + rng[3][i], shifted = rng[1][i] << 9;
  rng[2][i] ^= rng[0][i];
  rng[3][i] ^= rng[1][i];
  rng[1][i] ^= rng[2][i];
  rng[0][i] ^= rng[3][i];
  rng[2][i] ^= shifted;
  rng[3][i] = (rng[3][i] << 11) | (rng[3][i] >> 21);
  return out;
}

static inline float uniform(int i) { return ((float)(int32_t)(word(i) >> 8) + 0.5f) * 0x1p-24f; }

/* The push that keeps y + d, and the path between, above the wall; `twice` is 2 s^2 h. */
static inline float push_of(float y, float d, float mark, float twice) {
  float lowest = y + 0.5f * (d - sqrtf(d * d + twice * mark));
  return lowest < 0 ? -lowest : 0;
}

/* Splitting: half a step of decay, the reflected part with its drift averaged over the push, half a step of decay. */
static void step_all(float h, float noise, float decay, float beta) {
#pragma GCC ivdep
  for (int i = 0; i < LANES; i++) {
    float radius = sqrtf(-2 * logf(uniform(i))), normal = radius * cosf(6.2831853f * uniform(i)), mark = -logf(uniform(i));
    float a = idle[i] * decay, b = busy[i] * decay, d = (beta - b) * h + noise * normal;
    float push = push_of(a, d, mark, 4 * h);
    d -= 0.5f * push * h;
    push = push_of(a, d, mark, 4 * h);
    idle[i] = (a + d + push) * decay;
    busy[i] = (b + push) * decay;
    total[i] += busy[i];
  }
}

static void one_core(int core, long steps, double *out) {
  const float h = 0.1f, beta = 1;
  uint64_t seed = 1 + (uint64_t)core;
  for (int i = 0; i < LANES; i++) {
    for (int k = 0; k < 4; k++) rng[k][i] = (uint32_t)(splitmix(&seed) >> 32) | (k == 0);
    idle[i] = busy[i] = 1;
  }
  double sum = 0;
  for (long k = 0; k < 500; k++) step_all(h, sqrtf(2 * h), expf(-h / 2), beta);
  for (int i = 0; i < LANES; i++) total[i] = 0;
  double began = now();
  for (long k = 0; k < steps; k++) {
    step_all(h, sqrtf(2 * h), expf(-h / 2), beta);
    if (k % 1024 == 1023 || k == steps - 1)
      for (int i = 0; i < LANES; i++) sum += total[i], total[i] = 0;
  }
  out[0] = (double)steps * LANES / (now() - began);
  out[1] = sum / ((double)steps * LANES);
}

int main(int argc, char **argv) {
  int cores = argc > 1 ? atoi(argv[1]) : 1, pipes[2];
  long steps = argc > 2 ? atol(argv[2]) : 100000;
  double rate = 0, mean = 0, got[2];
  if (cores < 1 || steps < 1 || pipe(pipes)) return 1;
  for (int core = 0; core < cores; core++) {
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      one_core(core, steps, got);
      return write(pipes[1], got, sizeof got) != sizeof got;
    }
  }
  for (int core = 0; core < cores; core++) {
    if (read(pipes[0], got, sizeof got) != sizeof got) return 1;
    rate += got[0];
    mean += got[1] / cores;
  }
  while (wait(NULL) > 0) {
  }
  printf("%.9g %.9g\n", rate, mean);
  return 0;
}
