/**
 * Waits for work, for so long at the most; what it throws by then is thrown. `false`: it was not done by then, and goes on.
 * Holds the process meanwhile: who hangs in something that keeps nothing alive would end it before the rest is closed.
 */
export async function within(ms: number, work: Promise<unknown>): Promise<boolean> {
  const late = Promise.withResolvers<false>();
  const timer = setTimeout(() => late.resolve(false), ms);
  try {
    return await Promise.race([work.then(() => true), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
