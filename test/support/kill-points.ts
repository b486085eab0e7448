// Counts every durable write of a process so that it can be killed right before or right after any of them.

/** Two points per write. The even one is before the write, and the odd one is after it. */
export class KillPoints {
  readonly #dieAt: number | null;
  readonly names: string[] = [];
  #isCounting = false;

  constructor(dieAt: number | null) {
    this.#dieAt = dieAt;
  }

  /** Writes before this are not counted. */
  begin(): void {
    this.#isCounting = true;
  }

  around<T>(name: string, act: () => T): T {
    if (!this.#isCounting) return act();
    this.#reach(`before ${name}`);
    const done = act();
    if (!(done instanceof Promise)) {
      this.#reach(`after ${name}`);
      return done;
    }
    return done.then((value: unknown) => {
      this.#reach(`after ${name}`);
      return value;
    }) as T;
  }

  #reach(name: string): void {
    this.names.push(name);
    if (this.#dieAt === this.names.length - 1) process.kill(process.pid, "SIGKILL");
  }
}
