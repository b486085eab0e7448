/**
 * How long something takes of this thread's own time, in milliseconds. What others take of the machine meanwhile is not in it,
 * as it is in the time that a clock shows. The system counts in steps of a few milliseconds: short work is done as often as
 * it takes to be more than those.
 */
export function cpuMs(act: () => unknown): number {
  const from = threadMs();
  let times = 0;
  do {
    act();
    times += 1;
  } while (threadMs() - from < enoughMs);
  return (threadMs() - from) / times;
}

/** The same of what is waited for; what else goes on in this thread is in it. */
export async function cpuMsOf(act: () => Promise<unknown>): Promise<number> {
  const from = threadMs();
  let times = 0;
  do {
    await act();
    times += 1;
  } while (threadMs() - from < enoughMs);
  return (threadMs() - from) / times;
}

const enoughMs = 60;

/** Of this thread, since it began. */
export function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
