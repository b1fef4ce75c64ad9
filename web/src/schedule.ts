/**
 * Work of the main thread, gathered into one task per frame.
 *
 * Each frame is a `performance.measure` named `pondertree-frame`. Its duration includes the handling of the messages
 * that led to it.
 */

export const MEASURE = "pondertree-frame";
const KEPT = 500;

const jobs = new Set<() => void>();
let requested = 0;
let carried = 0;
let measured = 0;

/** Runs a job once in the next frame, however often it is asked for. */
export function schedule(job: () => void): void {
  jobs.add(job);
  if (!requested) requested = requestAnimationFrame(frame);
}

/** Runs work outside of frames, such as the handling of a message, and counts its time towards the next frame. */
export function account<T>(work: () => T): T {
  const start = performance.now();
  try {
    return work();
  } finally {
    carried += performance.now() - start;
  }
}

function frame(): void {
  requested = 0;
  const start = performance.now();
  const now = [...jobs];
  jobs.clear();
  for (const job of now) job();
  const end = performance.now();
  performance.measure(MEASURE, { start: Math.max(0, start - carried), end });
  carried = 0;
  if (++measured % KEPT === 0) performance.clearMeasures(MEASURE);
}

export const reducedMotion = (): boolean => matchMedia("(prefers-reduced-motion: reduce)").matches;
