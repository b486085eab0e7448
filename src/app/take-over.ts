/** How long a process owns a run without renewing its lease. */
export const defaultLeaseMs = 30_000;

/**
 * Returns a function that tells whether this process can take over a run whose lease has expired. After the machine was
 * suspended or its clock was set ahead, all leases on it have expired, so their owners first get time to renew them.
 */
export function createTakeOverCheck(
  leaseMs: number,
  wallTime: () => number = Date.now,
  monotonicTime: () => number = () => performance.now(),
): () => boolean {
  let offset = wallTime() - monotonicTime();
  let waitUntil = Number.NEGATIVE_INFINITY;
  return () => {
    const now = monotonicTime();
    const before = offset;
    offset = wallTime() - now;
    if (offset - before > leaseMs / 2) waitUntil = now + leaseMs;
    return now >= waitUntil;
  };
}
