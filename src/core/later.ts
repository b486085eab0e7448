/** Does something later, and keeps no process alive for it; what it gives takes that back. */
export type Later = (ms: number, act: () => void) => () => void;

export const later: Later = (ms, act) => {
  const timer = setTimeout(act, ms).unref();
  return () => clearTimeout(timer);
};
