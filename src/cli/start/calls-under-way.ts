import type { Handlers } from "../../gateway/calls/contract.ts";

/** Counts calls, so that what they stand on is not closed under them. */
export class CallsUnderWay {
  #count = 0;
  #idle = Promise.withResolvers<void>();

  get count(): number {
    return this.#count;
  }

  async during<T>(act: () => Promise<T>): Promise<T> {
    this.#count++;
    try {
      return await act();
    } finally {
      this.#count--;
      if (this.#count === 0) {
        this.#idle.resolve();
        this.#idle = Promise.withResolvers();
      }
    }
  }

  /** Until none is under way, for so long at the most. */
  async idle(graceMs: number): Promise<void> {
    if (this.#count === 0) return;
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, graceMs).unref();
    await Promise.race([this.#idle.promise, late.promise]);
    clearTimeout(timer);
  }
}

/** The same handlers, each call counted; `told` hears how it ended. */
export function counted(
  handlers: Handlers,
  calls: CallsUnderWay,
  told: (method: string, outcome: "ok" | "error") => void,
): Handlers {
  const each = Object.entries(handlers).map(([method, handler]) => {
    const call = handler as (...args: readonly unknown[]) => Promise<unknown>;
    const heard = async (...args: readonly unknown[]) => {
      try {
        const result = await calls.during(() => call(...args));
        told(method, "ok");
        return result;
      } catch (error) {
        told(method, "error");
        throw error;
      }
    };
    return [method, heard];
  });
  return Object.fromEntries(each) as unknown as Handlers;
}
